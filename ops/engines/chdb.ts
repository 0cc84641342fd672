import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants, setPriority } from 'node:os';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { AgonError } from '../../services/kernel/index.js';
import { compiled } from '../../services/runtime/package.js';
import { Server } from './server.js';

const START_MS = 60_000;
const STOP_MS = 5_000;

/** Why ClickHouse cannot run here; undefined when it can. */
export function whyNoChdb(): string | undefined {
  try {
    createRequire(import.meta.url).resolve('chdb/connection');
    return undefined;
  } catch {
    return 'the optional package chdb is not installed, or not made for this system';
  }
}

/** Where a rebuild is made, and where it waits to be taken over. */
export const rebuildFolders = (folder: string) => ({ building: `${folder}.building`, rebuilt: `${folder}.rebuilt` });

/**
 * ClickHouse's engine in a process of its own, on a folder that it alone has, answering on loopback as a ClickHouse
 * server does. A child, because a crash of the engine, or a query that takes all memory, must not take the arena along.
 */
export class ChdbEngine {
  private server: Server | undefined;
  private starting: Promise<void> | undefined;
  private stopped = false;
  /** Kept over restarts, so that clients stay good. */
  private port: number;
  private readonly secret = randomBytes(24).toString('base64url');

  constructor(
    private readonly folder: string,
    port = 0,
  ) {
    this.port = port;
  }

  /** For whoever reads. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** For the one who writes. */
  get writerUrl(): string {
    return `http://writer:${this.secret}@127.0.0.1:${this.port}`;
  }

  get pid(): number | undefined {
    return this.running ? this.server?.pid : undefined;
  }

  get running(): boolean {
    return this.server?.running ?? false;
  }

  /** Starts the engine unless it runs. A rebuild that is complete takes the folder's place first. */
  async ensure(): Promise<void> {
    if (this.stopped) throw new AgonError('ANALYTICS.UNAVAILABLE', 'The analytics engine has been stopped.');
    if (this.running && !this.starting) return;
    this.starting ??= this.start().finally(() => {
      this.starting = undefined;
    });
    await this.starting;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.starting?.catch(() => {});
    await this.server?.stop('SIGTERM', STOP_MS, 'SIGKILL');
  }

  private async start(): Promise<void> {
    adoptRebuild(this.folder);
    const file = compiled(import.meta.url, './chdb-child.js');
    // In a process group of its own: Ctrl-C reaches us alone, and we stop it last. It ends with its input, and so with us.
    const args = [file, this.folder, `${this.port}`];
    const child = spawn(execPath, args, { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
    const server = new Server(() => child);
    this.server = server;
    giveWay(child.pid);
    child.stdin.on('error', () => {});
    child.stdin.write(`${this.secret}\n`);
    const answer = await firstLine(child);
    if (!('port' in answer)) {
      await server.kill();
      throw new AgonError(answer.code, answer.message);
    }
    this.port = answer.port;
  }
}

type Answer = { readonly port: number } | { readonly code: string; readonly message: string };

async function firstLine(child: ChildProcess): Promise<Answer> {
  const failed = (message: string): Answer => ({ code: 'ANALYTICS.UNAVAILABLE', message });
  return new Promise((resolve) => {
    const tooLate = setTimeout(() => resolve(failed('The analytics engine did not start in time.')), START_MS);
    const settle = (answer: Answer) => {
      clearTimeout(tooLate);
      resolve(answer);
    };
    if (child.stdout) createInterface(child.stdout).once('line', (line) => settle(JSON.parse(line) as Answer));
    child.once('close', (code, signal) => {
      const why = `The analytics engine ended while starting (${signal ?? code})`;
      settle(failed(`${why}; another process may have its folder.`));
    });
  });
}

/** Matches and commands come before charts. */
function giveWay(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A system that does not let us is no reason to go without analytics.
  }
}

export function adoptRebuild(folder: string): void {
  const { rebuilt } = rebuildFolders(folder);
  if (!existsSync(rebuilt)) return;
  rmSync(folder, { recursive: true, force: true });
  renameSync(rebuilt, folder);
}
