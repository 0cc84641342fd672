import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { EventStoreDBClient, Filter } from '@eventstore/db-client';
import subscriptions from '@eventstore/db-client/dist/streams/utils/Subscription.js';
import { describe, expect, it } from 'vitest';
import type { RecordedEvent } from '../../kernel/index.js';
import { Tail } from './eventstoredb-tail.js';

const HELD_BACK = 2_048;
const LAST = 5_000;

/** The client's own subscription over a server that sends positions for events, and one checkpoint, over no wire. */
function serverOf(checkpoint: number) {
  const begun: number[] = [];
  let wire: Readable | undefined;
  function* answers(from: number) {
    for (let position = from + 1; position <= LAST; position++) {
      yield { hasEvent: () => true, getEvent: () => position };
      if (position === checkpoint) yield { hasCheckpoint: () => true, getCheckpoint: () => checkpointAt(position) };
    }
  }
  const subscribeToAll = ({ fromPosition, filter }: { fromPosition: 'start' | { commit: bigint }; filter: object }) => {
    const from = fromPosition === 'start' ? 0 : Number(fromPosition.commit);
    begun.push(from);
    const answering = answers(from);
    const read = () => {
      const next = answering.next();
      // It stays open at its end, as a subscription does.
      if (!next.done) wire?.push(next.value);
    };
    wire = Object.assign(new Readable({ objectMode: true, read }), { cancel: () => {} });
    const { checkpointReached } = filter as { checkpointReached: never };
    const opened = async () => wire as never;
    return new subscriptions.Subscription(opened, (event) => event as never, {}, checkpointReached);
  };
  const breakOff = () => wire?.emit('error', Object.assign(new Error('It broke.'), { code: 14 }));
  return { client: { subscribeToAll } as unknown as EventStoreDBClient, begun, breakOff };
}

const checkpointAt = (position: number) => ({
  getCommitPosition: () => `${position}`,
  getPreparePosition: () => `${position}`,
});

/** Stands still until everything behind it is full, and then takes what there is. */
async function drained(client: EventStoreDBClient, meanwhile: () => void): Promise<number[]> {
  const tail = new Tail(
    { client, renew: () => {} },
    {} as Filter,
    (position) => ({ position: Number(position) }) as RecordedEvent,
    0,
  );
  const seen: number[] = [];
  await tail.readAll({ limit: 0 });
  for (let i = 0; i < 500; i++) await turn();
  meanwhile();
  while (seen.at(-1) !== LAST) {
    const batch = await tail.readAll({ limit: 997 });
    seen.push(...batch.map(({ position }) => position));
    if (batch.length === 0) await tail.changed(0, AbortSignal.timeout(50));
  }
  tail.close();
  return seen;
}

describe('the tail of a log on EventStoreDB', () => {
  const everything = Array.from({ length: LAST }, (_, i) => i + 1);

  it.each([0, 1, 8, 15, 16])('loses nothing when a checkpoint overtakes %i events that wait', async (waiting) => {
    const { client } = serverOf(HELD_BACK + waiting);
    expect(await drained(client, () => {})).toEqual(everything);
  });

  it.each([0, 1, 8, 15, 16])('loses nothing when it breaks with %i events on their way', async (waiting) => {
    const { client, breakOff, begun } = serverOf(HELD_BACK + waiting);
    expect(await drained(client, breakOff)).toEqual(everything);
    expect(begun).toEqual([0, HELD_BACK]);
  });
});
