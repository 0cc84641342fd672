import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { stderr } from 'node:process';
import db, { type JSONType } from '@eventstore/db-client';
import { check, isOwn } from '../../gateway/eventstore/endpoint.js';
import { serveEventStore } from '../../gateway/eventstore/server.js';
import { contentId, toWire } from '../../proto/eventstore.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { NO_STREAM, randomIds, type SealedEvent, systemClock } from '../../services/kernel/index.js';
import { closing, withFolder } from '../harness/folders.js';
import { pagesOfLog } from '../harness/write-side.js';
import { type Child, startContender } from './child.js';
import { type BenchOptions, compare, type Report, scaled } from './rounds.js';
import { drive, walletStreams } from './workload.js';

const IN_FLIGHT = 64;
const EVENTS = 6_400;

type Streams = readonly (readonly SealedEvent[])[];

/** Appends acknowledged a second: the adapter with all its rules against the official client on its own. */
export function eventstore(options: BenchOptions): Promise<Report> {
  const streams = walletStreams(IN_FLIGHT, scaled(options, EVENTS));
  return withFolder(async (folder) => {
    const servers = startContender('eventstore', folder);
    // Every run gets an empty log behind a server of its own, in the same process.
    const newServer = async () => `esdb://127.0.0.1:${await servers.round()}?tls=false`;
    const contenders = {
      adapter: async () => adapter(await newServer(), streams),
      client: async () => bare(await newServer(), streams),
    };
    try {
      const ratios = { client: ['adapter', 'client'] } as const;
      return await compare(contenders, options, { ratios, targets: { client: 0.8 }, notes });
    } finally {
      await servers.stop();
    }
  });
}

/** Appends and reads a second of the adapter at any server; at our own endpoint without an address. */
export function store(options: BenchOptions): Promise<Report> {
  const all = walletStreams(IN_FLIGHT, scaled(options, EVENTS));
  return withFolder(async (folder) => {
    const servers = options.url ? undefined : startContender('eventstore', folder);
    const address = async () => {
      if (!options.url) return `esdb://127.0.0.1:${await servers?.round()}?tls=false`;
      // Every run gets streams of its own on a server that keeps what there was.
      return `${options.url}${options.url.includes('?') ? '&' : '?'}streamPrefix=${randomIds()}.`;
    };
    let filled = '';
    const contenders = {
      append: async () => {
        filled = await address();
        return adapter(filled, all);
      },
      read: async () => {
        if (filled === '') {
          filled = await address();
          await adapter(filled, all);
        }
        return reading(filled);
      },
    };
    try {
      const ratios = { read: ['read', 'append'] } as const;
      const notes = [`The adapter at ${options.url ? 'a server' : 'our own endpoint'}.`];
      return await compare(contenders, options, { ratios, notes });
    } finally {
      await servers?.stop();
    }
  });
}

async function reading(url: string): Promise<number> {
  return closing(EventStoreDbStore.open(url), async (log) => {
    let count = 0;
    const startedMs = performance.now();
    for await (const page of pagesOfLog(log)) count += page.length;
    return (count / (performance.now() - startedMs)) * 1000;
  });
}

/** In a process of its own: every order asks for an empty log behind a server; the answer is its port. */
export async function eventStoreServer([folder = '']: string[]): Promise<Child> {
  let stop = async () => {};
  const round = async () => {
    await stop();
    const store = await LmdbEventStore.open(mkdtempSync(join(folder, 'log-')));
    const anybody = { actor: { id: 'bench', role: 'operator' }, write: true } as const;
    const onInternalError = (error: unknown) => void stderr.write(`${String(error)}\n`);
    const ports = { store, clock: systemClock, ids: randomIds, isOwn, check, accessOf: () => anybody, onInternalError };
    const server = await serveEventStore(ports, { host: '127.0.0.1', port: 0 });
    stop = async () => {
      await server.close();
      await store.close();
    };
    return Number(server.address.split(':')[1]);
  };
  return { round, stop: () => stop() };
}

const adapter = (url: string, streams: Streams): Promise<number> =>
  closing(EventStoreDbStore.open(url), (store) =>
    drive(streams, (event) => store.append(event.stream, event.revision - 1, [event])),
  );

/** What the client is given is made beforehand; it only has to send it. */
async function bare(url: string, streams: Streams): Promise<number> {
  const client = db.EventStoreDBClient.connectionString(url);
  const proposals = streams.map((events) =>
    events.map((event) => {
      const { data, metadata } = toWire(event);
      const before = event.revision - 1;
      return {
        stream: event.stream,
        expectedRevision: before === NO_STREAM ? ('no_stream' as const) : BigInt(before),
        event: db.jsonEvent({ id: contentId(event), type: event.type, data: data as JSONType, metadata }),
      };
    }),
  );
  // As the adapter's opening does: the connection stands before the first append.
  for await (const _event of client.readAll({ maxCount: 1 }));
  try {
    return await drive(proposals, ({ stream, event, expectedRevision }) =>
      client.appendToStream(stream, event, { expectedRevision }),
    );
  } finally {
    await client.dispose();
  }
}

const notes = [
  'EventStoreDB: one event an append, one stream a writer, 64 in flight, against the endpoint over LMDB in a process of its own.',
];
