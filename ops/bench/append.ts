import type { SealedEvent } from '../../services/kernel/index.js';
import { withFolder } from '../harness/folders.js';
import { withEmmett } from './emmett.js';
import { type Log, openOurs, openRaw, openSqlite } from './logs.js';
import { installPeers } from './peers.js';
import { type BenchOptions, type Contenders, compare, merged, type Report, scaled } from './rounds.js';
import { drive, walletStreams } from './workload.js';

/** In flight, and how many events that takes to last about a quarter of a second. */
const loads = [
  { inFlight: 64, events: 12_800 },
  { inFlight: 1, events: 400 },
  { inFlight: 1024, events: 20_480 },
];
const EMMETT_EVENTS = 640;

const locals = { ours: openOurs, raw: openRaw, sqlite: openSqlite };

/** Events appended, durable and acknowledged a second. */
export function append(options: BenchOptions): Promise<Report> {
  installPeers();
  return withEmmett(async (openEmmett) => {
    const reports: Report[] = [];
    for (const { inFlight, events } of loads) {
      const suffix = inFlight === 64 ? '' : `@${inFlight}`;
      const streams = walletStreams(inFlight, scaled(options, events));
      const fewer = walletStreams(inFlight, scaled(options, EMMETT_EVENTS));
      const contenders: Contenders = {
        ...Object.fromEntries(
          Object.entries(locals).map(([name, open]) => [
            name + suffix,
            () => withFolder((place) => measure(() => open(place), streams)),
          ]),
        ),
        ...(suffix === '' ? { emmett: () => measure(openEmmett, fewer) } : {}),
      };
      const [ours = '', ...others] = Object.keys(contenders);
      const ratios = Object.fromEntries(others.map((name) => [name, [ours, name] as const]));
      reports.push({ ...(await compare(contenders, options, ratios)), targets: {}, notes: [] });
    }
    return { ...merged(reports), targets: { raw: 0.5, sqlite: 1.2, emmett: 15 }, notes };
  });
}

async function measure(open: () => Promise<Log>, streams: readonly (readonly SealedEvent[])[]): Promise<number> {
  const log = await open();
  try {
    return await drive(streams, (event) => log.append(event));
  } finally {
    await log.close();
  }
}

const notes = [
  'One event an append, one stream a writer; 64 in flight unless the name says otherwise. Events are sealed beforehand.',
];
