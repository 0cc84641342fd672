import { accounts } from '../../services/accounts/index.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { agents } from '../../services/agents/index.js';
import { arena } from '../../services/arena/index.js';
import { type Context, invariant, storeLimits, upcasterOf } from '../../services/kernel/index.js';
import { wallet } from '../../services/wallet/index.js';
import { pagesOfLog } from '../harness/write-side.js';
import { type Child, startContender } from './child.js';
import { withHistory } from './history.js';
import { type BenchOptions, compare, perSecond, type Report, thousands } from './rounds.js';

const EVENTS = 1_000_000;
const PAGES = [1024, storeLimits.pageEventsMax];
const by = (page: number) => `replay by ${page}`;

/** Folding the whole log into the state of every stream, against nothing but parsing the same events as JSON. */
export function replay(options: BenchOptions): Promise<Report> {
  return withHistory(EVENTS, options, async ({ path, count }) => {
    const folding = startContender('folder', path);
    const parsing = startContender('parser', path);
    try {
      const ours = PAGES.map((page) => [by(page), () => folding.round(`${page}`)] as const);
      const contenders = { ...Object.fromEntries(ours), jsonParse: () => parsing.round() };
      const against = Object.fromEntries(PAGES.map((page) => [by(page), [by(page), 'jsonParse'] as const]));
      const { results, ratios } = await compare(contenders, options, { ratios: against });
      const speed = (page: number) => results[by(page)]?.median ?? 0;
      const best = PAGES.reduce((a, b) => (speed(b) > speed(a) ? b : a));
      return {
        results,
        ratios: { jsonParse: ratios[by(best)] ?? Number.NaN },
        targets: { jsonParse: 1.5 },
        notes: [`${thousands(count)} events. The best page was ${best} events; the ratio is for that one.`],
      };
    } finally {
      await Promise.all([folding.stop(), parsing.stop()]);
    }
  });
}

const contexts: Readonly<Record<string, Context>> = { account: accounts, agent: agents, match: arena, wallet };
const upcast = upcasterOf(Object.values(contexts).map((context) => context.events));

interface Fold {
  readonly stream: string;
  readonly decider: Context['decider'];
  state: unknown;
}

/** In a process of its own: folds the log into every stream's state, by pages of the size that it is told. */
export async function folder([path = '']: string[]): Promise<Child> {
  const store = await LmdbEventStore.open(path, { readOnly: true });
  const count = await store.lastPosition();
  const foldAll = async (limit: number) => {
    const folds = new Map<string, Fold>();
    // Neighbours in the log are often of one stream, so the last one is looked for first where it is.
    let fold: Fold | undefined;
    let read = 0;
    for await (const page of pagesOfLog(store, 0, limit)) {
      for (const event of page) {
        if (fold?.stream !== event.stream) fold = folds.get(event.stream) ?? begin(folds, event.stream);
        fold.state = fold.decider.evolve(fold.state, upcast(event));
      }
      read += page.length;
    }
    invariant(read === count, `${read} of ${count} events were read.`);
  };
  return { round: (page) => perSecond(count, () => foldAll(Number(page))), stop: () => store.close() };
}

function begin(folds: Map<string, Fold>, stream: string): Fold {
  const context = contexts[stream.slice(0, stream.indexOf('-'))];
  invariant(context, `${stream} belongs to a context.`);
  const fold = { stream, decider: context.decider, state: context.decider.initial };
  folds.set(stream, fold);
  return fold;
}

/** In a process of its own: parses the events that it has as text. */
export async function parser([path = '']: string[]): Promise<Child> {
  const store = await LmdbEventStore.open(path, { readOnly: true });
  const texts: string[] = [];
  for await (const page of pagesOfLog(store)) texts.push(...page.map((event) => JSON.stringify(event)));
  const parseAll = async () => {
    for (const text of texts) JSON.parse(text);
  };
  return { round: () => perSecond(texts.length, parseAll), stop: () => store.close() };
}
