import { argv, stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';
import type { Child } from './child.js';

// Every process of our own that a benchmark starts: a line on stdin is a round, and the end of stdin is its end.
const contenders = {
  folder: async (args: string[]) => (await import('./replay.js')).folder(args),
  parser: async (args: string[]) => (await import('./replay.js')).parser(args),
  builder: async (args: string[]) => (await import('./project.js')).builder(args),
  inserter: async (args: string[]) => (await import('./analytics.js')).inserter(args),
  eventstore: async (args: string[]) => (await import('./eventstore.js')).eventStoreServer(args),
  hello: async () => (await import('./gateway.js')).hello(),
  players: async (args: string[]) => (await import('./play.js')).players(args),
} satisfies Readonly<Record<string, (args: string[]) => Promise<Child>>>;
export type ContenderName = keyof typeof contenders;

const [name, ...args] = argv.slice(2);
const contender = await contenders[name as ContenderName](args);
for await (const order of createInterface({ input: stdin })) stdout.write(`${await contender.round(order)}\n`);
await contender.stop();
