import { accounts } from '../../services/accounts/index.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { agents } from '../../services/agents/index.js';
import { arena } from '../../services/arena/index.js';
import { type Context, type EventStore, invariant, storeLimits, upcasterOf } from '../../services/kernel/index.js';
import { wallet } from '../../services/wallet/index.js';
import { writeHistory } from './history.js';
import { type BenchOptions, type Contender, figures, type Report, race, ratio, thousands } from './rounds.js';
import { withFolder } from './workload.js';

const EVENTS = 1_000_000;
const PAGES = [256, 1024, 4096, storeLimits.pageEventsMax];

const contexts: Readonly<Record<string, Context>> = { account: accounts, agent: agents, match: arena, wallet };
const upcast = upcasterOf(Object.values(contexts).map((context) => context.events));

/** Folding the whole log into the state of every stream, against nothing but parsing the same events as JSON. */
export async function replay(options: BenchOptions): Promise<Report> {
  return withFolder(async (folder) => {
    const store = await LmdbEventStore.open(folder);
    try {
      const count = await writeHistory(store, options.quick ? EVENTS / 20 : EVENTS);
      options.progress(`${thousands(count)} events written`);
      const texts = await textsOf(store, count);
      const contenders: Contender[] = PAGES.map((page) => ({
        name: `replay by ${page}`,
        run: () => perSecond(count, () => foldAll(store, page)),
      }));
      contenders.push({
        name: 'jsonParse',
        run: () =>
          perSecond(count, async () => {
            for (const text of texts) JSON.parse(text);
            return texts.length;
          }),
      });
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
      await store.close();
    }
  });
}

/** Neighbours in the log are often of one stream: its state goes back into the map when another one's turn comes. */
async function foldAll(store: EventStore, limit: number): Promise<number> {
  const states = new Map<string, unknown>();
  let [stream, decider, state] = ['', arena.decider, arena.decider.initial];
  let after = 0;
  for (;;) {
    const page = await store.readAll({ after, limit });
    for (const event of page) {
      if (event.stream !== stream) {
        states.set(stream, state);
        stream = event.stream;
        decider = contextOf(stream).decider;
        state = states.get(stream) ?? decider.initial;
      }
      state = decider.evolve(state, upcast(event));
    }
    const last = page.at(-1);
    if (!last) return after;
    after = last.position;
  }
}

function contextOf(stream: string): Context {
  const context = contexts[stream.slice(0, stream.indexOf('-'))];
  invariant(context, `${stream} belongs to a context.`);
  return context;
}

async function textsOf(store: EventStore, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) {
    for (const event of await store.readAll({ after: texts.length })) texts.push(JSON.stringify(event));
  }
  return texts;
}

async function perSecond(count: number, work: () => Promise<number>): Promise<number> {
  const startedMs = performance.now();
  const done = await work();
  invariant(done === count, `${done} of ${count} events were read.`);
  return (count / (performance.now() - startedMs)) * 1000;
}
