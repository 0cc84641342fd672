import { AgonError, isAgonError } from '../../services/kernel/index.js';
import { defaultLimits, type Limits } from '../limits.js';
import { checked, type Driver, type EgressEndpoint, type LoadOptions, type SourceCheck } from './driver.js';
import { ProcessAgent } from './process-agent.js';
import type { Sandbox } from './sandbox.js';

/** How one kind of sandbox is made. */
interface Workshop {
  readonly name: string;
  readonly version: string;
  /** How many launchers stand by for sandboxes that are not started yet. */
  readonly launchers: number;
  /** A sandbox that is not started yet. */
  prepare(limits: Limits, endpoint?: EgressEndpoint): Sandbox;
  /** A sandbox serves all limits with the same key; the others are set when an agent gets it. */
  keyOf(limits: Limits): string;
}

interface Spare<T> {
  readonly key: string;
  readonly sandbox: T;
}

/**
 * Keeps launchers in wait and, when asked to, sandboxes started and empty. Each serves one agent in one match, so nothing
 * can survive from one to another.
 */
export class SandboxDriver implements Driver {
  readonly name: string;
  readonly version: string;
  readonly meter = 'time';
  private readonly idle: Spare<Promise<Sandbox>>[] = [];
  private readonly prepared: Spare<Sandbox>[] = [];
  private readonly live = new Set<Sandbox>();
  private readonly ending = new Set<Promise<void>>();
  private warmCount = 0;
  private closed = false;

  protected constructor(private readonly workshop: Workshop) {
    this.name = workshop.name;
    this.version = workshop.version;
  }

  async load(source: string, options: LoadOptions): Promise<ProcessAgent> {
    if (this.closed) throw new AgonError('SANDBOX.CLOSED', 'The driver has been closed.');
    const sandbox = await this.take(options);
    this.refill(options.limits);
    return new ProcessAgent(this, source, options, sandbox, () => this.destroy(sandbox));
  }

  async check(source: string, limits: Limits): Promise<SourceCheck> {
    return checked(await this.load(source, { seed: 'check', seat: 0, limits }), limits.initMs);
  }

  /** From now on keeps this many sandboxes started ahead of the matches that will need them. */
  async warm(count: number, limits: Limits): Promise<void> {
    this.warmCount = count;
    this.refill(limits);
    await Promise.all(this.idle.map(({ sandbox }) => sandbox));
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.allSettled(this.idle.splice(0).map(({ sandbox }) => sandbox));
    for (const sandbox of this.live) this.destroy(sandbox);
    await Promise.all(this.ending);
  }

  /** Starts the first sandbox at once: whether this machine can hold one is known now, and not in a match. */
  protected async prove(): Promise<this> {
    try {
      const sandbox = await this.start(defaultLimits);
      this.idle.push({ key: this.workshop.keyOf(defaultLimits), sandbox: Promise.resolve(sandbox) });
      return this;
    } catch (error) {
      await this.close();
      if (!isAgonError(error, 'SANDBOX.START_FAILED')) throw error;
      const reason = error.message;
      throw new AgonError('SANDBOX.DRIVER_UNAVAILABLE', `${this.name} cannot run here: ${reason}`, { reason });
    }
  }

  private refill(limits: Limits): void {
    while (!this.closed && this.idle.length < this.warmCount) {
      const sandbox = this.start(limits);
      // Whoever takes it hears of the failure; until then it must not look unhandled.
      sandbox.catch(() => {});
      this.idle.push({ key: this.workshop.keyOf(limits), sandbox });
    }
  }

  /** An endpoint is built into the walls, so none of the sandboxes that wait has one. */
  private take({ limits, endpoint }: LoadOptions): Promise<Sandbox> {
    if (endpoint) return this.prepare(limits, endpoint).start();
    return take(this.idle, this.workshop.keyOf(limits)) ?? this.start(limits);
  }

  private start(limits: Limits): Promise<Sandbox> {
    const key = this.workshop.keyOf(limits);
    const prepared = take(this.prepared, key);
    const started = (prepared ?? this.prepare(limits)).start();
    // Launchers for limits that nobody asks for any more make room for others.
    const stale = prepared ? undefined : this.prepared.shift();
    if (stale) this.destroy(stale.sandbox);
    // The new ones get ready beside the sandbox that is starting, which this process only waits for.
    while (this.prepared.length < this.workshop.launchers) {
      this.prepared.push({ key, sandbox: this.prepare(limits) });
    }
    return started;
  }

  private prepare(limits: Limits, endpoint?: EgressEndpoint): Sandbox {
    const sandbox = this.workshop.prepare(limits, endpoint);
    this.live.add(sandbox);
    return sandbox;
  }

  private destroy(sandbox: Sandbox): void {
    if (!this.live.delete(sandbox)) return;
    const ending = sandbox.destroy().finally(() => this.ending.delete(ending));
    this.ending.add(ending);
  }
}

/** Takes the oldest that fits. */
function take<T>(spares: Spare<T>[], key: string): T | undefined {
  const index = spares.findIndex((each) => each.key === key);
  return index < 0 ? undefined : spares.splice(index, 1)[0]?.sandbox;
}
