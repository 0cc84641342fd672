import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { compiled } from '../../services/runtime/package.js';
import type { Answer } from './protocol.js';
import { between, type Random } from './workload.js';

export const damages = ['truncate', 'flip', 'zero'] as const;
export type Damage = (typeof damages)[number];

const ZERO_BYTES_MAX = 16_384;
const ANSWER_MS = 30_000;

/** Damages a file as a failing disk or a careless hand would. Returns what was done, in words. */
export function inflict(damage: Damage, path: string, random: Random): string {
  const bytes = readFileSync(path);
  const at = between(random, 0, bytes.length - 1);
  switch (damage) {
    case 'truncate':
      truncateSync(path, at);
      return `cut at ${at} of ${bytes.length}`;
    case 'flip': {
      const mask = between(random, 1, 255);
      bytes[at] = (bytes[at] ?? 0) ^ mask;
      writeFileSync(path, bytes);
      return `byte ${at} of ${bytes.length} flipped by ${mask}`;
    }
    case 'zero': {
      const end = Math.min(bytes.length, at + between(random, 1, ZERO_BYTES_MAX));
      bytes.fill(0, at, end);
      writeFileSync(path, bytes);
      return `bytes ${at} to ${end} of ${bytes.length} zeroed`;
    }
  }
}

/** Asks a process of its own what a folder holds, and survives its death. */
export class Reader {
  private child: ChildProcess | undefined;

  async ask(folder: string): Promise<Answer | { readonly outcome: 'crashed' | 'hung'; readonly how: string }> {
    this.child ??= this.start();
    const { child } = this;
    return new Promise((resolve) => {
      let output = '';
      let errors = '';
      const timer = setTimeout(() => end({ outcome: 'hung', how: `no answer in ${ANSWER_MS} ms` }), ANSWER_MS);
      const onExit = (code: number | null, signal: string | null) =>
        end({ outcome: 'crashed', how: `${signal ?? `exit ${code}`} ${errors.slice(0, 300)}` });
      const onErrors = (chunk: Buffer) => {
        errors += chunk.toString();
      };
      const onOutput = (chunk: Buffer) => {
        output += chunk.toString();
        if (output.endsWith('\n')) end(JSON.parse(output) as Answer);
      };
      const end = (answer: Awaited<ReturnType<Reader['ask']>>) => {
        clearTimeout(timer);
        child.off('close', onExit);
        child.stdout?.off('data', onOutput);
        child.stderr?.off('data', onErrors);
        if (answer.outcome === 'hung' || answer.outcome === 'crashed') this.stop();
        resolve(answer);
      };
      child.on('close', onExit);
      child.stdout?.on('data', onOutput);
      child.stderr?.on('data', onErrors);
      child.stdin?.write(`${folder}\n`);
    });
  }

  private start(): ChildProcess {
    const child = spawn(execPath, [compiled(import.meta.url, './reader.js')], { stdio: ['pipe', 'pipe', 'pipe'] });
    // Writing to one that has just died is answered by its exit, not by an error here.
    child.stdin.on('error', () => {});
    return child;
  }

  stop(): void {
    this.child?.kill('SIGKILL');
    this.child = undefined;
  }
}

/** A copy of closed data, to be damaged and thrown away. */
export function copyOf(folder: string, name: string): { copy: string; remove(): void } {
  const copy = join(folder, '..', name);
  cpSync(folder, copy, { recursive: true });
  return { copy, remove: () => rmSync(copy, { recursive: true, force: true }) };
}
