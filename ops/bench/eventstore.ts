import { join } from 'node:path';
import { execPath } from 'node:process';
import db, { type JSONType } from '@eventstore/db-client';
import { contentId, toWire } from '../../proto/eventstore.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { NO_STREAM, type SealedEvent } from '../../services/kernel/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { type Child, startChild } from './child.js';
import { withFolder } from './folders.js';
import { type BenchOptions, type Contender, type Figures, figures, type Report, race, ratio } from './rounds.js';
import { drive, walletStreams } from './workload.js';

const IN_FLIGHT = 64;
const EVENTS = 6_400;

type Streams = readonly (readonly SealedEvent[])[];
/** Appends acknowledged a second: the adapter with all its rules against the official client on its own. */
export async function eventstore(options: BenchOptions): Promise<Report> {
  const streams = walletStreams(IN_FLIGHT, options.quick ? EVENTS / 10 : EVENTS);
  return withFolder(async (folder) => {
    const file = join(packageRoot, 'dist', 'ops', 'bench', 'eventstore-door.js');
    const doors = startChild(execPath, [file, folder]);
    try {
      const contenders: Contender[] = [
        { name: 'adapter', run: () => adapter(doors, streams) },
        { name: 'client', run: () => bare(doors, streams) },
      ];
      const measured = await race(contenders, options);
      const results: Record<string, Figures> = {};
      for (const [name, rounds] of measured) results[name] = figures(rounds);
      return { results, ratios: { client: ratio(measured, 'adapter', 'client') }, targets: { client: 0.8 }, notes };
    } finally {
      await doors.stop();
    }
  });
}

/** Every run gets an empty log behind a door of its own, in the same process. */
const newDoor = async (doors: Child) => `esdb://127.0.0.1:${await doors.round('open')}?tls=false`;

async function adapter(doors: Child, streams: Streams): Promise<number> {
  const store = await EventStoreDbStore.open(await newDoor(doors));
  try {
    return await drive(streams, (event) => store.append(event.stream, event.revision - 1, [event]));
  } finally {
    await store.close();
  }
}

/** What the client is given is made beforehand; it only has to send it. */
async function bare(doors: Child, streams: Streams): Promise<number> {
  const client = db.EventStoreDBClient.connectionString(await newDoor(doors));
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
