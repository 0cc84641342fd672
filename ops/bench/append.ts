import type { SealedEvent } from '../../services/kernel/index.js';
import { startEmmett } from './emmett.js';
import { withFolder } from './folders.js';
import { type Log, openOurs, openRaw, openSqlite } from './logs.js';
import { installPeers } from './peers.js';
import { type BenchOptions, type Contender, type Figures, figures, type Report, race, ratio } from './rounds.js';
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
export async function append(options: BenchOptions): Promise<Report> {
  installPeers();
  return withFolder(async (folder) => {
    const emmett = await startEmmett(folder);
    try {
      const results: Record<string, Figures> = {};
      const ratios: Record<string, number> = {};
      for (const { inFlight, events } of loads) {
        const suffix = inFlight === 64 ? '' : `@${inFlight}`;
        const streams = walletStreams(inFlight, options.quick ? events / 10 : events);
        const contenders: Contender[] = Object.entries(locals).map(([name, open]) => ({
          name: name + suffix,
          run: () => withFolder((place) => measure(() => open(place), streams)),
        }));
        if (inFlight === 64) {
          const fewer = walletStreams(inFlight, options.quick ? EMMETT_EVENTS / 10 : EMMETT_EVENTS);
          contenders.push({ name: 'emmett', run: () => measure(emmett.open, fewer) });
        }
        const measured = await race(contenders, options);
        for (const [name, rounds] of measured) {
          results[name] = figures(rounds);
          if (name !== `ours${suffix}`) ratios[name] = ratio(measured, `ours${suffix}`, name);
        }
      }
      return { results, ratios, targets: { raw: 0.5, sqlite: 1.2, emmett: 15 }, notes };
    } finally {
      await emmett.stop();
    }
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
