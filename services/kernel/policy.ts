import { SYSTEM } from './command.js';
import type { Command, CommandMeta } from './decider.js';
import type { RecordedEvent } from './event.js';
import { derivedId } from './ids.js';

/** How a policy names one of its commands: the n-th reaction of this policy to this event. */
export type Reaction = (index: number) => CommandMeta;

/**
 * Events in, commands out: the only way from one context to another. The ids of the commands come from the event and
 * the policy's name, so an event delivered twice causes nothing twice.
 *
 * @example
 * export const escrow = definePolicy('escrow', ['MatchProposed'], (event: MatchProposed, meta) =>
 *   event.data.seats.map((seat, index) => new HoldFunds({ ... }, meta(index))));
 */
export interface Policy {
  readonly name: string;
  readonly types: readonly string[];
  react(event: RecordedEvent): readonly Command[];
}

export function definePolicy<E extends { readonly type: string }>(
  name: string,
  types: readonly E['type'][],
  react: (event: E & RecordedEvent, meta: Reaction) => readonly Command[],
): Policy {
  return {
    name,
    types,
    react: (event) =>
      react(event as E & RecordedEvent, (index) => ({
        id: derivedId(event.id, name, index),
        actor: SYSTEM,
        // The reaction happens at the time of its cause: a redelivered event must give the very same command.
        time: event.time,
        correlationId: event.meta.correlationId,
        causationId: event.id,
      })),
  };
}
