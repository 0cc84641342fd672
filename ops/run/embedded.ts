import { rmSync, writeFileSync } from 'node:fs';
import { type HotBoards, MemoryBoards } from '../../projections/leaderboards/hot.js';
import { RedisBoards } from '../../projections/sinks/redis.js';
import { LmdbCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { PolicyDeadLetters } from '../../services/adapters/bus/dead-letters.js';
import { MemoryChannel } from '../../services/adapters/channel.js';
import { MemoryLease } from '../../services/adapters/lease.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { RedisLimits } from '../../services/adapters/limits/redis.js';
import {
  AgonError,
  asAgonError,
  type Lease,
  type Quotas,
  type RateLimits,
  systemClock,
} from '../../services/kernel/index.js';
import type { PaymentProvider } from '../../services/payments/index.js';
import { DataFolder } from '../../services/runtime/data-folder.js';
import type { ClickHouseServer, DeadLetterWants, Engines, MakeBus, Rows } from '../../services/runtime/engines.js';
import { addDeadLetterGauge, addDiskGauges, addLogGauges } from '../../services/runtime/gauges.js';
import type { Host } from '../../services/runtime/host.js';
import { ChdbEngine } from '../engines/chdb.js';
import { startPostgres } from '../engines/postgres.js';
import { type Sandbox, startStripeSandbox } from '../stripe-sandbox/server.js';
import { logName } from './log.js';
import { type SandboxChoice, sandboxProvider, stripeProviderOf } from './payments.js';
import { redisOf } from './redis.js';
import { SharedEngines } from './shared.js';

export interface EmbeddedOptions {
  /** Payments by the stand-in for Stripe. */
  readonly sandbox?: SandboxChoice;
}

/** The engines of one process with a folder of its own: everything is in it, or a child of this process. */
export class EmbeddedEngines extends SharedEngines implements Engines {
  /** The stand-in for Stripe, if it was asked for and is open. */
  sandbox: Sandbox | undefined;
  private readonly leases = new Map<string, Lease>();

  constructor(
    host: Host,
    private readonly options: EmbeddedOptions = {},
  ) {
    super(host);
  }

  folder(): Promise<DataFolder> {
    const { config, metrics } = this.host;
    return this.host.engine('data folder', async () => {
      const folder = DataFolder.take(config.dataDir);
      addDiskGauges(metrics, config.dataDir);
      return { value: folder, stop: async () => folder.release() };
    });
  }

  log() {
    const { config, metrics } = this.host;
    return this.host.engine('log', async () => {
      const folder = await this.folder();
      const log = await this.openLog();
      folder.derivesFrom(logName(config));
      addLogGauges(metrics, log.value, folder.paths.log);
      return log;
    });
  }

  checkpoints() {
    return this.host.engine('checkpoints', async () => {
      // What follows from another log is removed first.
      await this.log();
      const checkpoints = new LmdbCheckpoints((await this.folder()).paths.bus);
      addDeadLetterGauge(this.host.metrics, this.host.consumers, checkpoints);
      return { value: checkpoints, stop: () => checkpoints.close() };
    });
  }

  bus(): Promise<MakeBus> {
    return this.tail();
  }

  boards(): Promise<HotBoards> {
    const { redisUrl } = this.host.config;
    const open = async () =>
      redisUrl === undefined ? new MemoryBoards() : new RedisBoards(await redisOf(this.host, redisUrl));
    return this.host.engine<HotBoards>('boards', async () => ({ value: await open() }));
  }

  limits(): Promise<RateLimits & Quotas> {
    const { config, clock, log } = this.host;
    const { redisUrl } = config;
    return this.host.engine<RateLimits & Quotas>('limits', async () => {
      const now = config.now ? systemClock : clock;
      const memory = new MemoryLimits(() => Date.parse(now()));
      if (redisUrl === undefined) return { value: memory };
      const redis = await redisOf(this.host, redisUrl);
      const alone = (err: unknown) => log.warn({ err }, 'limits hold for this process alone');
      return { value: new RedisLimits(redis, memory, alone) };
    });
  }

  channel() {
    return this.host.engine('channel', async () => ({ value: new MemoryChannel() }));
  }

  async lease(name: string): Promise<Lease> {
    const lease = this.leases.get(name) ?? new MemoryLease();
    this.leases.set(name, lease);
    return lease;
  }

  rows(): Promise<Rows> {
    return this.host.engine('rows', async () => {
      const changes = new Map<string, number>();
      return {
        value: {
          changesOf: (view) => changes.get(view) ?? 0,
          changed: (view) => changes.set(view, (changes.get(view) ?? 0) + 1),
          position: async () => {
            const views = [...this.host.consumers].filter(([name]) => name.startsWith('projection.'));
            return Math.min(...views.map(([, consumer]) => consumer.position()));
          },
        } satisfies Rows,
      };
    });
  }

  /** What policies gave up on before is tried once at every start: what was in the way may be gone. */
  deadLetters(wants: DeadLetterWants) {
    return this.host.engine('dead letters of policies', async () => {
      const [store, checkpoints] = await Promise.all([this.log(), this.checkpoints()]);
      const letters = new PolicyDeadLetters({ ...wants, store, checkpoints });
      const { done, left } = await letters.replay();
      if (done.length + left.length > 0) this.host.log.warn({ done, left }, 'dead letters were handed out again');
      return { value: letters };
    });
  }

  payments(): Promise<PaymentProvider | undefined> {
    const { host, options } = this;
    return host.engine('payment provider', async () => {
      if (!options.sandbox) return { value: stripeProviderOf(host) };
      const { provider, sandbox } = await sandboxProvider(host, options.sandbox, startStripeSandbox);
      this.sandbox = sandbox;
      host.addresses.stripe = sandbox.url;
      return { value: provider, stop: () => sandbox.stop() };
    });
  }

  clickhouse(): Promise<ClickHouseServer | undefined> {
    const { config } = this.host;
    return this.host.engine('clickhouse', async () => {
      if (!config.analytics) return { value: undefined };
      if (config.clickhouseUrl !== undefined) return { value: clickHouseNamed(config.clickhouseUrl) };
      const { analytics, analyticsAddress } = (await this.folder()).paths;
      return { value: new OwnClickHouse(new ChdbEngine(analytics, config.analyticsPort), analyticsAddress) };
    });
  }

  async relay(): Promise<never> {
    throw new AgonError('CONFIG.INVALID', 'An arena in one process has no bus to publish to.');
  }

  /** The PostgreSQL that was named, or one of this folder. */
  protected databaseUrl(): Promise<string> {
    return this.host.engine('postgres', async () => {
      const named = this.host.config.databaseUrl?.reveal();
      if (named !== undefined) return { value: named };
      const folder = await this.folder();
      // What follows from another log is removed first.
      await this.log();
      const postgres = await startPostgres({ folder: folder.paths.postgres });
      return { value: postgres.url, stop: () => postgres.stop() };
    });
  }
}

/** One that somebody else runs. */
export const clickHouseNamed = (url: string): ClickHouseServer => ({
  open: (prepare) => prepare(url),
  running: () => true,
  url: () => url,
  close: async () => {},
});

/** ClickHouse's engine as a child of this process, begun by the first who opens it, and again when it is gone. */
export class OwnClickHouse implements ClickHouseServer {
  private why: AgonError | undefined = new AgonError('ANALYTICS.UNAVAILABLE', 'Analytics are starting; ask again.');
  private answered = () => {};
  /** Resolves once it has answered or failed for the first time. */
  readonly firstAnswer = new Promise<void>((resolve) => {
    this.answered = resolve;
  });

  constructor(
    private readonly engine: ChdbEngine,
    /** Where others read how to reach it. */
    private readonly note: string,
  ) {}

  async open<T>(prepare: (writerUrl: string) => Promise<T>): Promise<T> {
    const { engine } = this;
    try {
      await engine.ensure();
      const prepared = await prepare(engine.writerUrl);
      writeFileSync(this.note, JSON.stringify({ url: engine.url, pid: engine.pid }));
      this.why = undefined;
      return prepared;
    } catch (error) {
      this.why = asAgonError(error);
      throw error;
    } finally {
      this.answered();
    }
  }

  running(): boolean {
    return this.engine.running;
  }

  url(): string {
    if (this.why) throw this.why;
    return this.engine.url;
  }

  async close(): Promise<void> {
    await this.engine.stop();
    rmSync(this.note, { force: true });
  }
}
