import type { SealedEvent } from '../../services/kernel/index.js';
import { closing, withFolder } from '../harness/folders.js';
import { withEmmett } from './emmett.js';
import { type Log, openOurs, openRaw, openSqlite } from './logs.js';
import { installPeers } from './peers.js';
import { type BenchOptions, compare, inTurn, type Report, scaled } from './rounds.js';
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
    const underLoad = ({ inFlight, events }: (typeof loads)[number]) => {
      const suffix = inFlight === 64 ? '' : `@${inFlight}`;
      const streams = walletStreams(inFlight, scaled(options, events));
      const contenders: Record<string, () => Promise<number>> = {};
      for (const [name, open] of Object.entries(locals)) {
        contenders[name + suffix] = () => withFolder((place) => measure(open(place), streams));
      }
      if (suffix === '') {
        const fewer = walletStreams(inFlight, scaled(options, EMMETT_EVENTS));
        contenders.emmett = () => measure(openEmmett(), fewer);
      }
      const [ours = '', ...others] = Object.keys(contenders);
      const ratios = Object.fromEntries(others.map((name) => [name, [ours, name] as const]));
      return () => compare(contenders, options, { ratios });
    };
    const report = await inTurn(...loads.map(underLoad))(options);
    return { ...report, targets: { raw: 0.5, sqlite: 1.2, emmett: 15 }, notes };
  });
}

const measure = (opening: Promise<Log>, streams: readonly (readonly SealedEvent[])[]): Promise<number> =>
  closing(opening, (log) => drive(streams, (event) => log.append(event)));

const notes = [
  'One event an append, one stream a writer; 64 in flight unless the name says otherwise. Events are sealed beforehand.',
];
