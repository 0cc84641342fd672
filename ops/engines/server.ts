import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const BEAT_MS = 50;
const AGAIN_MS = 500;

/**
 * A server of ours, in a process of its own.
 *
 * @example const server = new Server(() => spawn('redis-server', settings)); await server.ready(ping, 30_000);
 */
export class Server {
  private child: ChildProcess;
  private stopping = false;
  private kept = false;

  constructor(
    private readonly launch: () => ChildProcess,
    private readonly againMs = AGAIN_MS,
  ) {
    this.child = this.launched();
  }

  get pid(): number {
    return this.child.pid as number;
  }

  get running(): boolean {
    const { pid, exitCode, signalCode } = this.child;
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  /** Asks until it answers; throws what it said last when that takes too long, or when it ends instead. */
  async ready(answers: () => Promise<unknown>, withinMs: number): Promise<void> {
    for (const sinceMs = performance.now(); ; await sleep(BEAT_MS)) {
      if (!this.running) throw new Error('it ended while starting');
      try {
        return void (await answers());
      } catch (error) {
        if (performance.now() - sinceMs > withinMs) throw error;
      }
    }
  }

  /** From now on it is started again when it ends by itself. Before, that would hide why it does not start. */
  keep(): void {
    this.kept = true;
  }

  /** Starts it again, if it was stopped. */
  restart(): void {
    this.stopping = false;
    if (!this.running) this.child = this.launched();
  }

  /** As a crash would: whether it is started again is as it was. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (!this.running) return;
    const ended = once(this.child, 'exit');
    this.child.kill(signal);
    await ended;
  }

  /** Whoever does not end by the first signal in time ends by the second. */
  async stop(signal: NodeJS.Signals = 'SIGTERM', patienceMs?: number, last?: NodeJS.Signals): Promise<void> {
    this.stopping = true;
    if (!this.running) return;
    const ended = once(this.child, 'exit');
    this.child.kill(signal);
    if (patienceMs !== undefined) await Promise.race([ended, sleep(patienceMs, undefined, { ref: false })]);
    if (patienceMs !== undefined && this.running) this.child.kill(last);
    await ended;
  }

  private launched(): ChildProcess {
    const child = this.launch();
    // One that could not even be spawned is noticed by whoever waits for it to be ready.
    child.on('error', () => {});
    child.once('exit', () => {
      setTimeout(() => this.kept && !this.stopping && this.restart(), this.againMs).unref();
    });
    return child;
  }
}

/** A command whose life is tied to ours, however we end, where the system can do it. */
export function tied(command: string, args: readonly string[]): [file: string, args: readonly string[]] {
  const can = spawnSync('setpriv', ['--version'], { stdio: 'ignore' }).status === 0;
  return can ? ['setpriv', ['--pdeathsig', 'TERM', command, ...args]] : [command, args];
}

export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const free = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
  });
  if (free) await new Promise((resolve) => server.close(resolve));
  return free;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
