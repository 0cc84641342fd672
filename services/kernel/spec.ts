import { AssertionError } from 'node:assert';
import { isDeepStrictEqual } from 'node:util';
import { assertAllowedGiven, classOf } from './authorise.js';
import { checkedData } from './catalogue.js';
import type { Context } from './context.js';
import { type Command, type DomainEvent, fold } from './decider.js';
import { type AgonError, isAgonError } from './errors.js';

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
      assertAllowedGiven(context, command, state);
      const events = context.decider.decide(command, state);
      for (const event of events) checkedData(context.events, event);
      return events;
    };
    return {
      when: (command: Command) => ({
        then(expected: readonly DomainEvent[]): void {
          let events: readonly DomainEvent[];
          try {
            events = decided(command);
          } catch (error) {
            if (!isRefusal(error)) throw error;
            throw notSo(`${command.type} was refused with ${error.code}, and was to give\n${pretty(expected)}`, error);
          }
          if (isDeepStrictEqual(plain(events), plain(expected))) return;
          throw notSo(`${command.type} gave\n${pretty(events)}\ninstead of\n${pretty(expected)}`);
        },
        thenRefused(code: string): void {
          let events: readonly DomainEvent[];
          try {
            events = decided(command);
          } catch (error) {
            if (isAgonError(error, code)) return;
            if (!isRefusal(error)) throw error;
            throw notSo(`${command.type} was refused with ${error.code}, and not with ${code}`, error);
          }
          throw notSo(`${command.type} was to be refused with ${code}, and gave\n${pretty(events)}`);
        },
      }),
    };
  };
}

/** Whether this actor may send this command, as the command alone can tell. */
export const allowed = (command: Command): boolean => classOf(command).spec.allow(command.meta.actor, command.data);

/** An answer to the command, as against a fault in Agon itself. */
const isRefusal = (error: unknown): error is AgonError => isAgonError(error) && !error.code.startsWith('INTERNAL');

/** A claim of a specification that does not hold, as against an error of what it specifies. */
const notSo = (message: string, cause?: Error): AssertionError =>
  Object.assign(new AssertionError({ message }), cause === undefined ? {} : { cause });

const plain = (events: readonly DomainEvent[]) => JSON.parse(JSON.stringify(events)) as unknown;
const pretty = (events: readonly DomainEvent[]) => JSON.stringify(events, null, 2);
