import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { execPath } from 'node:process';
import type { Readable } from 'node:stream';
import { compiled } from '../../services/runtime/package.js';
import type { ChildName } from './child.js';
import { Started } from './processes.js';

/** What a child says goes out at once, a line of JSON each: whatever kills it comes after. */
export const tell = (line: unknown): void => {
  writeSync(1, `${JSON.stringify(line)}\n`);
};

/** Starts one of this run's processes, and hears what it says. */
export function startChild<Line>(
  name: ChildName,
  args: readonly string[],
  onLine: (line: Line, child: Started) => void = () => {},
): Started {
  const process = spawn(execPath, [compiled(import.meta.url, './child.js'), name, ...args]);
  const child = new Started(process);
  // Writing to one that has just died is answered by its end, not by an error here.
  process.stdin.on('error', () => {});
  eachLine(process.stdout, (text) => onLine(JSON.parse(text) as Line, child));
  return child;
}

/** How it ended: by SIGTERM if it stood still, so that it is not taken for one that was killed. */
export function endWithin(child: Started, ms: number): Promise<string> {
  const stuck = setTimeout(() => child.end('SIGTERM'), ms);
  return child.ended.finally(() => clearTimeout(stuck));
}

/** A last line without its end was cut by a kill and promised nothing. */
function eachLine(stream: Readable, onLine: (text: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
}
