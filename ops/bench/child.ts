import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { AgonError } from '../../services/kernel/index.js';
import { compiled, nodeFlags } from '../../services/runtime/package.js';
import type { ContenderName } from './contender.js';

/** A process that answers lines: a line in is an order, a line out is a number. */
export interface Child {
  round(order?: string): Promise<number>;
  stop(): Promise<void>;
}

/** Starts one of our own contenders, so that it works in nobody else's memory. */
export const startContender = (name: ContenderName, ...args: readonly string[]): Child =>
  startChild(execPath, [...nodeFlags, compiled(import.meta.url, './contender.js'), name, ...args]);

/** It ends when its input does, or by the signal that it needs. `line` is the next line that it says. */
export function startChild(
  file: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; quiet?: boolean; signal?: NodeJS.Signals } = {},
) {
  const child = spawn(file, args, { env: options.env, stdio: ['pipe', 'pipe', options.quiet ? 'ignore' : 'inherit'] });
  const closed = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const { value } = await lines.next();
    if (value === undefined) throw new AgonError('BENCH.CHILD_ENDED', `${file} ${args.join(' ')} has ended.`);
    return value;
  };
  return {
    line,
    round: async (order = '') => {
      child.stdin.write(`${order}\n`);
      return Number(await line());
    },
    stop: async () => {
      child.stdin.end();
      if (options.signal) child.kill(options.signal);
      await closed;
    },
  };
}
