import { isDeepStrictEqual } from 'node:util';
import { checkedData } from './catalogue.js';
import type { CommandClass } from './command.js';
import { type Command, type DomainEvent, fold } from './decider.js';
import { isAgonError } from './errors.js';
import type { Context } from './handle.js';

/**
 * Reads a decider's behaviour as a sentence. Needs no test framework, so that any runner can use it.
 *
 * @example
 * const given = specification(wallet);
 * given([granted('10.00')]).when(hold('4.00')).then([held('4.00')]);
 * given([]).when(hold('4.00')).thenRefused('WALLET.INSUFFICIENT_FUNDS');
 */
export function specification(context: Context) {
  return (history: readonly DomainEvent[]) => {
    const state = fold(context.decider, history);
    const decided = (command: Command) => {
      const events = context.decider.decide(command, state);
      for (const event of events) checkedData(context.events, event);
      return events;
    };
    return {
      when: (command: Command) => ({
        then(expected: readonly DomainEvent[]): void {
          const events = decided(command);
          if (!isDeepStrictEqual(plain(events), plain(expected))) {
            throw new Error(`${command.type} gave\n${pretty(events)}\ninstead of\n${pretty(expected)}`);
          }
        },
        thenRefused(code: string): void {
          let events: readonly DomainEvent[];
          try {
            events = decided(command);
          } catch (error) {
            if (isAgonError(error, code)) return;
            throw new Error(`${command.type} was refused, but not with ${code}`, { cause: error });
          }
          throw new Error(`${command.type} was to be refused with ${code}, and gave\n${pretty(events)}`);
        },
      }),
    };
  };
}

/** Whether this actor may send this command, as the command alone can tell. */
export const allowed = (command: Command): boolean =>
  (command.constructor as unknown as CommandClass).spec.allow(command.meta.actor, command.data);

const plain = (events: readonly DomainEvent[]) => JSON.parse(JSON.stringify(events)) as unknown;
const pretty = (events: readonly DomainEvent[]) => JSON.stringify(events, null, 2);
