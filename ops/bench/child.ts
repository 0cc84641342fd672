import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { AgonError } from '../../services/kernel/index.js';

/** A contender in a process of its own: a line in is an order, a line out is how many a second it managed. */
export interface Child {
  round(order: string): Promise<number>;
  stop(): Promise<void>;
}

export function startChild(file: string, args: readonly string[]): Child {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    round: async (order) => {
      child.stdin.write(`${order}\n`);
      const { value } = await answers.next();
      if (value === undefined) throw new AgonError('BENCH.CHILD_ENDED', `${file} ${args.join(' ')} has ended.`);
      return Number(value);
    },
    stop: async () => {
      child.stdin.end();
      await closed;
    },
  };
}
