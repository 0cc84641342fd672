import { setTimeout as sleep } from 'node:timers/promises';
import { LmdbCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { contexts } from '../../services/index.js';
import {
  type Checkpoints,
  type Command,
  type CommandMeta,
  type Consumer,
  type Context,
  createHandle,
  type EventStore,
  Folds,
  type Handled,
  invariant,
  isAgonError,
  storeLimits,
} from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { runPolicy } from '../../services/runtime/policies.js';

export const policies = contexts.flatMap((context) => context.policies ?? []);

export function contextOf({ type }: Command): Context {
  const context = contexts.find(({ commands }) => commands.some(({ spec }) => spec.type === type));
  invariant(context, `${type} belongs to a context.`);
  return context;
}

export function commandNamed(type: string, data: unknown, meta: CommandMeta): Command {
  const found = contexts.flatMap(({ commands }) => commands).find(({ spec }) => spec.type === type);
  invariant(found, `There is a command ${type}.`);
  return new found(data as never, meta);
}

/** A seat of this account's agent, with a code that nobody runs. */
export const seatOf = (accountId: string, codeDigest = 'c0de'.repeat(16)) => ({
  agentId: `${accountId}.bot`,
  accountId,
  version: 1,
  codeDigest,
  runtime: 'javascript' as const,
});

/** What a runner reports of a match that this seat has won. */
export const wonBy = (winner: number, seats = 2) => ({
  turns: [],
  outcome: {
    winner,
    scores: Array.from({ length: seats }, (_, seat) => (seat === winner ? 1 : 0)),
    reason: 'line',
    detail: '',
    seatAtFault: null,
  },
  execution: { driver: 'wasm', gameVersion: 1, limits: {}, usage: [] },
});

/** A log page by page, from the event after this one on. */
export async function* pagesOfLog(
  store: Pick<EventStore, 'readAll'>,
  after = 0,
  limit: number = storeLimits.pageEventsMax,
) {
  for (let from = after; ; ) {
    const page = await store.readAll({ after: from, limit });
    const last = page.at(-1);
    if (!last) return;
    yield page;
    from = last.position;
  }
}

/** A log's events by their streams. */
export function streamsIn<Event extends { readonly stream: string }>(log: readonly Event[]): Map<string, Event[]> {
  const streams = new Map<string, Event[]>();
  for (const event of log) {
    const events = streams.get(event.stream) ?? [];
    streams.set(event.stream, events);
    events.push(event);
  }
  return streams;
}

type Around = (command: Command, carryOut: () => Promise<Handled>) => Promise<Handled>;

/** Again and again while the log's server is away. */
async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isAgonError(error, 'STORE.UNAVAILABLE')) throw error;
      await sleep(100);
    }
  }
}

/** The write side of an arena: the log in its folder or on a server, every command, and the policies that follow. */
export async function openWriteSide(folder: string, around: Around = (_, carryOut) => carryOut(), storeUrl = '') {
  const paths = folderLayout(folder);
  const store: EventStore = storeUrl
    ? await patiently(() => EventStoreDbStore.open(storeUrl))
    : await LmdbEventStore.open(paths.log);
  const checkpoints = new LmdbCheckpoints(paths.bus);
  const folds = new Folds({ store });
  const handle = createHandle({ store, folds });
  const execute = (command: Command) => patiently(() => around(command, () => handle(contextOf(command), command)));
  const bus = new EmbeddedBus(store, checkpoints);
  const consumers = await Promise.all(policies.map((policy) => runPolicy(bus, policy, execute)));
  return {
    paths,
    store,
    engines: {
      bus: async () => (behind: Checkpoints) => new EmbeddedBus(store, behind),
      checkpoints: async () => checkpoints,
    },
    load: folds.load,
    execute,
    /** Until policies, and these others, have taken in all that they made of it. */
    settled: async (...others: readonly Pick<Consumer, 'position'>[]) => {
      const lastPosition = () => patiently(() => store.lastPosition());
      for (let last = -1; last !== (await lastPosition()); ) {
        last = await lastPosition();
        while ([...consumers, ...others].some((consumer) => consumer.position() < last)) await sleep(1);
      }
    },
    close: async () => {
      await bus.close();
      await checkpoints.close();
      await store.close();
    },
  };
}
