import { AgonError, isAgonError } from '../../services/kernel/index.js';
import { defaultLimits, type Limits } from '../limits.js';
import type { AgentInstance, Driver, EgressDoor, LoadOptions, SourceCheck } from './driver.js';
import { ProcessAgent } from './process-agent.js';
import type { Sandbox } from './sandbox.js';

/** How one kind of sandbox is made. */
export interface Workshop {
  readonly name: string;
  readonly version: string;
  start(limits: Limits, door?: EgressDoor): Sandbox;
  /** A started sandbox serves all limits with the same key; the others are set when an agent gets it. */
  keyOf(limits: Limits): string;
}

interface Idle {
  readonly key: string;
  readonly ready: Promise<Sandbox>;
}

/** Keeps sandboxes started and empty. Each serves one agent in one match, so nothing can survive from one to another. */
export class SandboxDriver implements Driver {
  readonly name: string;
  readonly version: string;
  readonly meter = 'time';
  readonly #workshop: Workshop;
  readonly #idle: Idle[] = [];
  readonly #live = new Set<Sandbox>();
  readonly #ending = new Set<Promise<void>>();
  #warmCount = 0;
  #closed = false;

  protected constructor(workshop: Workshop) {
    this.name = workshop.name;
    this.version = workshop.version;
    this.#workshop = workshop;
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
    this.#refill(limits);
    await Promise.all(this.#idle.map(({ ready }) => ready));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#idle.splice(0).map(({ ready }) => ready));
    for (const sandbox of this.#live) this.#destroy(sandbox);
    await Promise.all(this.#ending);
  }

  /** Starts the first sandbox at once: whether this machine can hold one is known now, and not in a match. */
  protected async prove(): Promise<this> {
    try {
      const sandbox = await this.#start(defaultLimits);
      this.#idle.push({ key: this.#workshop.keyOf(defaultLimits), ready: Promise.resolve(sandbox) });
      return this;
    } catch (error) {
      await this.close();
      if (!isAgonError(error, 'SANDBOX.START_FAILED')) throw error;
      const reason = error.message;
      throw new AgonError('SANDBOX.DRIVER_UNAVAILABLE', `${this.name} cannot run here: ${reason}`, { reason });
    }
  }

  async #load(source: string, options: LoadOptions): Promise<ProcessAgent> {
    if (this.#closed) throw new AgonError('SANDBOX.CLOSED', 'The driver has been closed.');
    const key = this.#workshop.keyOf(options.limits);
    // A door is built into the walls, so none of the sandboxes that wait has one.
    const index = options.door ? -1 : this.#idle.findIndex((idle) => idle.key === key);
    const taken = this.#idle.splice(index, index < 0 ? 0 : 1)[0];
    const sandbox = await (taken?.ready ?? this.#start(options.limits, options.door));
    this.#refill(options.limits);
    return new ProcessAgent(this, source, options, sandbox, () => this.#destroy(sandbox));
  }

  #refill(limits: Limits): void {
    while (!this.#closed && this.#idle.length < this.#warmCount) {
      const ready = this.#start(limits);
      // Whoever takes it hears of the failure; until then it must not look unhandled.
      ready.catch(() => {});
      this.#idle.push({ key: this.#workshop.keyOf(limits), ready });
    }
  }

  async #start(limits: Limits, door?: EgressDoor): Promise<Sandbox> {
    const sandbox = this.#workshop.start(limits, door);
    this.#live.add(sandbox);
    return sandbox.ready;
  }

  #destroy(sandbox: Sandbox): void {
    if (!this.#live.delete(sandbox)) return;
    const ending = sandbox.destroy().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}
