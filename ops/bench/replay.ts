import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { compiled } from '../../services/adapters/compiled.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { AgonError, storeLimits } from '../../services/kernel/index.js';
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

interface Replayer {
  round(order: string): Promise<number>;
  stop(): Promise<void>;
}

function startReplayer(folder: string, what: 'fold' | 'parse'): Replayer {
  const child = spawn(execPath, [compiled(import.meta.url, './replayer.js'), folder, what], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    round: async (order) => {
      child.stdin.write(`${order}\n`);
      const { value } = await answers.next();
      if (value === undefined)
        throw new AgonError('BENCH.REPLAYER_ENDED', `The process that was to ${what} has ended.`);
      return Number(value);
    },
    stop: async () => {
      child.stdin.end();
      await closed;
    },
  };
}
