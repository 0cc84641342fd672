import { z } from 'zod';
import { defineEvents, type EventOf } from './catalogue.js';
import { commandsOn, defineCommand } from './command.js';
import { defineContext } from './context.js';
import type { CommandMeta, Decider } from './decider.js';
import { AgonError } from './errors.js';
import { type Actor, EMPTY_HEAD, type SealedEvent, type StreamHead, seal } from './event.js';
import { derivedId } from './ids.js';

/** What specifications share: a history to store, and the smallest context that takes every way through handle(). */

export const TIME = '2026-03-01T12:00:00.000Z';
export const OPERATOR: Actor = { id: 'olga', role: 'operator' };

export const metaOf = (id: string, actor: Actor = OPERATOR, time = TIME): CommandMeta => ({
  id,
  actor,
  time,
  correlationId: id,
  causationId: id,
});

/** Sealed events that continue a stream. The writer tells apart two who write the same revisions. */
export function chain(
  stream: string,
  count: number,
  options: { after?: StreamHead; writer?: string; data?: (revision: number) => unknown } = {},
): SealedEvent[] {
  const { after = EMPTY_HEAD, writer = 'w', data = (revision: number) => ({ revision }) } = options;
  let { revision, hash: prevHash } = after;
  return Array.from({ length: count }, () => {
    revision += 1;
    const commandId = derivedId(writer, stream, revision);
    const sealed = seal({
      id: derivedId(commandId, 0),
      type: 'Noted',
      version: 1,
      stream,
      revision,
      time: TIME,
      data: data(revision),
      meta: {
        commandId,
        inputHash: '0'.repeat(64),
        correlationId: commandId,
        causationId: commandId,
        actor: OPERATOR,
      },
      prevHash,
    });
    prevHash = sealed.hash;
    return sealed;
  });
}

/** The head after a chain, for the next one. */
export const headAfter = (events: readonly SealedEvent[]): StreamHead => {
  const last = events.at(-1);
  return last ? { revision: last.revision, hash: last.hash } : EMPTY_HEAD;
};

const counterEvents = defineEvents('counter', {
  Added: { version: 1, schema: z.object({ counterId: z.string(), by: z.int().max(1_000) }) },
});

/** Recorded as it is. Adding nothing changes nothing; more than 1000 makes an event that its own schema refuses. */
export class Add extends defineCommand({
  type: 'Add',
  data: z.object({ counterId: z.string(), by: z.int() }),
  stream: (data) => `counter-${data.counterId}`,
  allow: (actor, data) => actor.role === 'operator' || actor.id === data.counterId,
}) {}

const byOperator = commandsOn(
  (data: { counterId: string }) => `counter-${data.counterId}`,
  (actor) => actor.role === 'operator',
);

export class AddEach extends byOperator('AddEach', z.object({ counterId: z.string(), amounts: z.array(z.int()) })) {}
/** What is asked for has been checked by the event's own schema. */
export class AddLittle extends byOperator('AddLittle', counterEvents.specs.Added.schema) {}

type CounterEvent = EventOf<typeof counterEvents>;
type CounterState = { readonly total: number };

const decider: Decider<CounterState, Add | AddEach | AddLittle, CounterEvent> = {
  initial: { total: 0 },
  decide(command, { total }) {
    const { counterId } = command.data;
    const added = command.type === 'AddEach' ? command.data.amounts.map((by) => ({ counterId, by })) : [command.data];
    const sum = added.reduce((all, { by }) => all + by, total);
    if (sum < 0) throw new AgonError('COUNTER.NEGATIVE', `${counterId} would be ${sum}.`);
    return added.filter(({ by }) => by !== 0).map((data) => ({ type: 'Added', data }));
  },
  evolve: ({ total }, event) => ({ total: total + event.data.by }),
};

export const counter = defineContext({
  name: 'counter',
  streams: 'counter',
  events: counterEvents,
  decider,
  commands: [Add, AddEach, AddLittle],
});
