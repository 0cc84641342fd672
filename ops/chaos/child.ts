import { argv } from 'node:process';

// Every process that a chaos run starts and kills. Each loads what it needs alone, and starts the faster for it.
const children = {
  writer: async (args: string[]) => (await import('./append.js')).write(args),
  reader: async () => (await import('./append.js')).answerReaders(),
  projector: async (args: string[]) => (await import('./rebuilds.js')).projectAndRebuild(args),
  feeder: async (args: string[]) => (await import('./analytics.js')).feedAndCompare(args),
  house: () => import('./house.js'),
  payments: () => import('./payments.js'),
} as const;
export type ChildName = keyof typeof children;

const [name, ...args] = argv.slice(2);
await children[name as ChildName](args);
