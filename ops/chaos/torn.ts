import { cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startChild } from './children.js';
import type { Started } from './processes.js';
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

/** What a reader says about a folder, having opened it and read everything in it. */
export type Answer =
  | { readonly outcome: 'reported'; readonly code: string; readonly message: string }
  | { readonly outcome: 'served'; readonly digest: string; readonly events: number }
  | { readonly outcome: 'inconsistent'; readonly what: string };

/** Asks a process of its own what a folder holds, and survives its death. */
export class Reader {
  private process: Started | undefined;
  private onAnswer: (answer: Answer) => void = () => {};

  async ask(folder: string): Promise<Answer | { readonly outcome: 'crashed' | 'hung'; readonly how: string }> {
    this.process ??= startChild<Answer>('reader', [], (answer) => this.onAnswer(answer));
    const { process } = this;
    const answered = new Promise<Answer>((resolve) => {
      this.onAnswer = resolve;
    });
    process.child.stdin?.write(`${folder}\n`);
    const answer = await Promise.race([
      answered,
      process.ended.then((how) => ({ outcome: 'crashed', how: `${how} ${process.errors}` }) as const),
      sleep(ANSWER_MS, { outcome: 'hung', how: `no answer in ${ANSWER_MS} ms` } as const, { ref: false }),
    ]);
    if (answer.outcome === 'hung' || answer.outcome === 'crashed') this.stop();
    return answer;
  }

  stop(): void {
    this.process?.child.kill('SIGKILL');
    this.process = undefined;
  }
}

/** A copy of closed data, to be damaged and thrown away. */
export function copyOf(folder: string, name: string): { copy: string; remove(): void } {
  const copy = join(folder, '..', name);
  cpSync(folder, copy, { recursive: true });
  return { copy, remove: () => rmSync(copy, { recursive: true, force: true }) };
}
