import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import {
  type Command,
  createHandle,
  type EventStore,
  newMeta,
  type SealedEvent,
  storeLimits,
} from '../../services/kernel/index.js';
import { GrantCredits, wallet } from '../../services/wallet/index.js';
import { closing, withFolder } from '../harness/folders.js';
import { type BenchOptions, compare, type Report, scaled } from './rounds.js';
import { drive } from './workload.js';

const STREAMS = 64;
const COMMANDS = 12_800;
const OPERATOR = { id: 'ada', role: 'operator' } as const;

/** The whole write path, from a command to its acknowledgement, against appending the events it ends in. */
export async function command(options: BenchOptions): Promise<Report> {
  const perStream = scaled(options, COMMANDS) / STREAMS;
  const inputs = Array.from({ length: STREAMS }, () => Array.from({ length: perStream }, (_, i) => i));
  const commands = inputs.map((numbers, stream) => numbers.map((i) => grant(stream, i)));
  const events = await sealedBy(commands);
  const contenders = {
    handle: () =>
      withStore((store) => {
        const handle = createHandle({ store });
        return drive(commands, (command) => handle(wallet, command));
      }),
    'parse and handle': () =>
      withStore((store) => {
        const handle = createHandle({ store });
        return drive(inputs, (i, stream) => handle(wallet, grant(stream, i)));
      }),
    append: () =>
      withStore((store) => drive(events, (event) => store.append(event.stream, event.revision - 1, [event]))),
  };
  return compare(contenders, options, {
    ratios: { append: ['handle', 'append'], 'append, with parsing': ['parse and handle', 'append'] },
    targets: { append: 0.5 },
    notes: [
      'GrantCredits on 64 wallets, 64 in flight. handle() gets commands that are made already; with parsing, the input ' +
        'is checked and the command made inside the measured path too.',
    ],
  });
}

const grant = (stream: number, i: number): Command =>
  new GrantCredits(
    { accountId: `player-${stream}`, amountCents: `${1000 + i}`, currency: 'PLAY', reason: 'Weekly allowance' },
    newMeta(OPERATOR),
  );

/** The events of these commands, as handle() seals them. */
async function sealedBy(commands: readonly (readonly Command[])[]): Promise<SealedEvent[][]> {
  const store = new MemoryEventStore();
  const handle = createHandle({ store });
  const streams: SealedEvent[][] = [];
  for (const list of commands) {
    let stream = '';
    for (const command of list) ({ stream } = await handle(wallet, command));
    const recorded = await store.readStream(stream, { limit: storeLimits.pageEventsMax });
    streams.push(recorded.map(({ position: _, ...sealed }) => sealed));
  }
  return streams;
}

export const withStore = (use: (store: EventStore) => Promise<number>): Promise<number> =>
  withFolder((folder) => closing(LmdbEventStore.open(folder), use));
