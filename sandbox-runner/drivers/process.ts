import { readFileSync } from 'node:fs';
import { AgonError, asAgonError, isAgonError } from '../../services/kernel/index.js';
import { defaultLimits, type Limits } from '../limits.js';
import { type Bubblewrap, findBubblewrap } from './bubblewrap.js';
import { type CgroupTree, findCgroups } from './cgroup.js';
import type { AgentInstance, Driver, LoadOptions, SourceCheck } from './driver.js';
import { ProcessAgent } from './process-agent.js';
import { type Language, type Runtime, runtimeFor } from './runtimes.js';
import { Sandbox } from './sandbox.js';

/** Raised when a shim or the walls around it change what an agent can see or do. */
const generation = 1;

let groups = 0;

interface Idle {
  readonly diskBytes: number;
  readonly ready: Promise<Sandbox>;
}

const machine = (): { bubblewrap: Bubblewrap; cgroups: CgroupTree } => ({
  bubblewrap: findBubblewrap(),
  cgroups: findCgroups(readFileSync('/proc/mounts', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8')),
});

/** Why this machine cannot hold process sandboxes, as far as a look can tell; undefined when it can. */
export function whyNoProcessSandboxes(): string | undefined {
  try {
    machine();
    return undefined;
  } catch (error) {
    return asAgonError(error).message;
  }
}

/**
 * Runs agents as processes of this machine, in sandboxes of bubblewrap, seccomp and cgroups. Where one of these cannot
 * hold its part, `open` refuses with SANDBOX.DRIVER_UNAVAILABLE and the reason, because half a sandbox is none.
 *
 * @example const driver = await ProcessDriver.open('python');
 */
export class ProcessDriver implements Driver {
  readonly name: string;
  readonly version: string;
  readonly meter = 'time';
  readonly #runtime: Runtime;
  readonly #bubblewrap: Bubblewrap;
  readonly #cgroups: CgroupTree;
  /** Started and empty. Each serves one agent in one match, so nothing can survive from one to another. */
  readonly #idle: Idle[] = [];
  readonly #live = new Set<Sandbox>();
  readonly #ending = new Set<Promise<void>>();
  #warmCount = 0;
  #closed = false;

  private constructor(runtime: Runtime, bubblewrap: Bubblewrap, cgroups: CgroupTree) {
    this.name = `process/${runtime.name}`;
    this.version = `${runtime.name} ${runtime.version}, bubblewrap ${bubblewrap.version}, cgroup ${cgroups.version}, sandbox ${generation}`;
    this.#runtime = runtime;
    this.#bubblewrap = bubblewrap;
    this.#cgroups = cgroups;
  }

  /** The first sandbox is started at once: whether this machine can hold one is known here, and not in a match. */
  static async open(language: Language | Runtime): Promise<ProcessDriver> {
    const { bubblewrap, cgroups } = machine();
    const runtime = typeof language === 'string' ? await runtimeFor(language) : language;
    const driver = new ProcessDriver(runtime, bubblewrap, cgroups);
    try {
      const sandbox = await driver.#start(defaultLimits.diskBytes);
      driver.#idle.push({ diskBytes: defaultLimits.diskBytes, ready: Promise.resolve(sandbox) });
      return driver;
    } catch (error) {
      await driver.close();
      if (!isAgonError(error, 'SANDBOX.START_FAILED')) throw error;
      const reason = error.message;
      throw new AgonError('SANDBOX.DRIVER_UNAVAILABLE', `The process driver cannot run here: ${reason}`, { reason });
    }
  }

  async load(source: string, options: LoadOptions): Promise<AgentInstance> {
    return this.#load(source, options);
  }

  async check(source: string, limits: Limits): Promise<SourceCheck> {
    const agent = await this.#load(source, { seed: 'check', seat: 0, limits });
    try {
      const booted = await agent.boot(limits.initMs);
      return booted.kind === 'fault' ? { ok: false, rule: booted.rule, detail: booted.detail } : { ok: true };
    } finally {
      agent.dispose();
    }
  }

  /** From now on keeps this many sandboxes started ahead of the matches that will need them. */
  async warm(count: number, limits: Limits): Promise<void> {
    this.#warmCount = count;
    this.#refill(limits.diskBytes);
    await Promise.all(this.#idle.map(({ ready }) => ready));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#idle.splice(0).map(({ ready }) => ready));
    for (const sandbox of this.#live) this.#destroy(sandbox);
    await Promise.all(this.#ending);
  }

  async #load(source: string, options: LoadOptions): Promise<ProcessAgent> {
    if (this.#closed) throw new AgonError('SANDBOX.CLOSED', 'The driver has been closed.');
    const { diskBytes } = options.limits;
    const index = this.#idle.findIndex((idle) => idle.diskBytes === diskBytes);
    const taken = this.#idle.splice(index, index < 0 ? 0 : 1)[0];
    const sandbox = await (taken?.ready ?? this.#start(diskBytes));
    this.#refill(diskBytes);
    return new ProcessAgent(this, source, options, sandbox, () => this.#destroy(sandbox));
  }

  #refill(diskBytes: number): void {
    while (!this.#closed && this.#idle.length < this.#warmCount) {
      const ready = this.#start(diskBytes);
      // Whoever takes it hears of the failure; until then it must not look unhandled.
      ready.catch(() => {});
      this.#idle.push({ diskBytes, ready });
    }
  }

  async #start(diskBytes: number): Promise<Sandbox> {
    const group = this.#cgroups.create(`${process.pid}-${++groups}`);
    const sandbox = new Sandbox(this.#bubblewrap, group, this.#runtime, diskBytes);
    this.#live.add(sandbox);
    return sandbox.ready;
  }

  #destroy(sandbox: Sandbox): void {
    if (!this.#live.delete(sandbox)) return;
    const ending = sandbox.destroy().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}
