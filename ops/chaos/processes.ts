import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process, { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { compiled, packageRoot } from '../../services/runtime/package.js';
import type { ArenaLine } from './runner.js';

/** A process of a chaos run, which does not outlive it. */
export class Started {
  readonly ended: Promise<string>;
  errors = '';
  private peak = 0;

  constructor(readonly child: ChildProcess) {
    const killWithUs = () => child.kill('SIGKILL');
    process.prependListener('exit', killWithUs);
    child.stderr?.on('data', (chunk: Buffer) => {
      this.errors = (this.errors + chunk.toString()).slice(-2_000);
    });
    this.ended = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        process.off('exit', killWithUs);
        resolve(signal ?? `exit ${code}`);
      });
    });
  }

  /** Sends the signal and resolves with how the process ended. */
  end(signal: NodeJS.Signals): Promise<string> {
    this.peakKiB();
    this.child.kill(signal);
    return this.ended;
  }

  /** The most memory that the process had resident, as the kernel counts it; 0 where it does not say. */
  peakKiB(): number {
    try {
      const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
      this.peak = Math.max(this.peak, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
    } catch {}
    return this.peak;
  }
}

export interface ArenaArgs {
  readonly folder: string;
  readonly seed: number;
  readonly matches: number;
  readonly leaseMs: number;
  /** Ticks of fuel that an agent burns in a turn. */
  readonly fuel: number;
}

export async function startArena(args: ArenaArgs, onLine: (line: ArenaLine) => void) {
  const { folder, seed, matches, leaseMs, fuel } = args;
  const file = compiled(import.meta.url, './arena.js');
  const child = spawn(execPath, [file, folder, ...[seed, matches, leaseMs, fuel].map(String)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const started = new Started(child);
  const address = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (text) => {
      const line = JSON.parse(text) as ArenaLine;
      if (line.kind === 'open') resolve(line.address);
      else onLine(line);
    });
    void started.ended.then((how) => reject(new Error(`The arena ended by itself (${how}): ${started.errors}`)));
  });
  return { started, address };
}

/** A runner as anybody would start it. */
export function startRunner(args: { folder: string; address: string; key: string; concurrency: number }): Started {
  const { folder, address, key, concurrency } = args;
  const flags = ['--arena', address, '--key-dir', join(folder, key), '--concurrency', String(concurrency), '--json'];
  const command = [join(packageRoot, 'ops', 'cli', 'agon.js'), 'runner', '--data', folder, ...flags];
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };
  return new Started(spawn(execPath, command, { stdio: ['ignore', 'ignore', 'pipe'], env }));
}
