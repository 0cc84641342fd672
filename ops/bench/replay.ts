import { execPath } from 'node:process';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { storeLimits } from '../../services/kernel/index.js';
import { compiled, nodeFlags } from '../../services/runtime/package.js';
import { startChild } from './child.js';
import { withFolder } from './folders.js';
import { writeHistory } from './history.js';
import { type BenchOptions, type Contender, figures, type Report, race, ratio, thousands } from './rounds.js';

const EVENTS = 1_000_000;
const PAGES = [1024, storeLimits.pageEventsMax];

/** Folding the whole log into the state of every stream, against nothing but parsing the same events as JSON. */
export async function replay(options: BenchOptions): Promise<Report> {
  return withFolder(async (folder) => {
    const store = await LmdbEventStore.open(folder);
    const count = await writeHistory(store, options.quick ? EVENTS / 20 : EVENTS).finally(() => store.close());
    options.progress(`${thousands(count)} events written`);
    const folding = startReplayer(folder, 'fold');
    const parsing = startReplayer(folder, 'parse');
    try {
      const contenders: Contender[] = PAGES.map((page) => ({
        name: `replay by ${page}`,
        run: () => folding.round(`${page}`),
      }));
      contenders.push({ name: 'jsonParse', run: () => parsing.round('') });
      const measured = await race(contenders, options);
      const results = Object.fromEntries([...measured].map(([name, rounds]) => [name, figures(rounds)]));
      const speed = (page: number) => results[`replay by ${page}`]?.median ?? 0;
      const best = PAGES.reduce((a, b) => (speed(b) > speed(a) ? b : a));
      return {
        results,
        ratios: { jsonParse: ratio(measured, `replay by ${best}`, 'jsonParse') },
        targets: { jsonParse: 1.5 },
        notes: [`${thousands(count)} events. The best page was ${best} events; the ratio is for that one.`],
      };
    } finally {
      await Promise.all([folding.stop(), parsing.stop()]);
    }
  });
}

const startReplayer = (folder: string, what: 'fold' | 'parse') =>
  startChild(execPath, [...nodeFlags, compiled(import.meta.url, './replayer.js'), folder, what]);
