import { argv, stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';
import { accounts } from '../../services/accounts/index.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { agents } from '../../services/agents/index.js';
import { arena } from '../../services/arena/index.js';
import { type Context, type EventStore, invariant, upcasterOf } from '../../services/kernel/index.js';
import { wallet } from '../../services/wallet/index.js';

// Started by the replay benchmark, one process a contender, so that neither works in the other's memory. Every line on
// stdin is a round: the page to replay by, or nothing to parse. The answer is events a second.
const contexts: Readonly<Record<string, Context>> = { account: accounts, agent: agents, match: arena, wallet };
const upcast = upcasterOf(Object.values(contexts).map((context) => context.events));

const [folder = '', what] = argv.slice(2);
const store = await LmdbEventStore.open(folder, { readOnly: true });
const count = await store.lastPosition();
const texts = what === 'parse' ? await textsOf(store) : [];

for await (const line of createInterface({ input: stdin })) {
  const startedMs = performance.now();
  const done = what === 'parse' ? parseAll() : await foldAll(Number(line));
  const ms = performance.now() - startedMs;
  invariant(done === count, `${done} of ${count} events were read.`);
  stdout.write(`${(count / ms) * 1000}\n`);
}
await store.close();

interface Fold {
  readonly stream: string;
  readonly decider: Context['decider'];
  state: unknown;
}

/** Neighbours in the log are often of one stream, so the last one is looked for first where it is. */
async function foldAll(limit: number): Promise<number> {
  const folds = new Map<string, Fold>();
  let fold: Fold | undefined;
  let after = 0;
  for (;;) {
    const page = await store.readAll({ after, limit });
    for (const event of page) {
      if (fold?.stream !== event.stream) fold = folds.get(event.stream) ?? begin(folds, event.stream);
      fold.state = fold.decider.evolve(fold.state, upcast(event));
    }
    const last = page.at(-1);
    if (!last) return after;
    after = last.position;
  }
}

function begin(folds: Map<string, Fold>, stream: string): Fold {
  const { decider } = contextOf(stream);
  const fold = { stream, decider, state: decider.initial };
  folds.set(stream, fold);
  return fold;
}

function contextOf(stream: string): Context {
  const context = contexts[stream.slice(0, stream.indexOf('-'))];
  invariant(context, `${stream} belongs to a context.`);
  return context;
}

function parseAll(): number {
  for (const text of texts) JSON.parse(text);
  return texts.length;
}

async function textsOf(from: EventStore): Promise<string[]> {
  const found: string[] = [];
  for (;;) {
    const page = await from.readAll({ after: found.length, limit: 1024 });
    if (page.length === 0) return found;
    for (const event of page) found.push(JSON.stringify(event));
  }
}
