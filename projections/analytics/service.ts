import { rmSync, writeFileSync } from 'node:fs';
import type { Analytics, PartStatus } from '../../gateway/ports.js';
import { ChdbEngine } from '../../ops/engines/chdb.js';
import { AgonError, asAgonError, type Consumer, type EventStore } from '../../services/kernel/index.js';
import type { Config } from '../../services/runtime/settings.js';
import { ClickHouseSink, clickHouseAt } from '../sinks/clickhouse.js';
import { type ChartName, charts } from './charts.js';
import { feed } from './feed.js';

const OFF = 'Analytics are switched off here. Start without --no-analytics (AGON_ANALYTICS) to have them.';

interface Paths {
  readonly analytics: string;
  readonly analyticsAddress: string;
}

/**
 * Analytics beside the arena: they start after its doors are open, follow the log on their own, and whatever becomes of
 * them, nothing waits for them. The engine is a child process, started again by the feed when it is gone.
 */
export class EmbeddedAnalytics implements Analytics {
  private readonly engine: ChdbEngine | undefined;
  private following: Consumer | undefined;
  private sink: ClickHouseSink | undefined;
  private trouble: AgonError | undefined;
  private answered = () => {};
  private readonly firstAnswer = new Promise<void>((resolve) => {
    this.answered = resolve;
  });

  constructor(
    private readonly config: Config,
    private readonly paths: Paths,
    private readonly log: EventStore,
    private readonly onRetry: (error: unknown) => void,
  ) {
    const { analytics, analyticsPort, clickhouseUrl } = config;
    if (analytics && clickhouseUrl === undefined) this.engine = new ChdbEngine(paths.analytics, analyticsPort);
  }

  start(): void {
    if (!this.config.analytics) return;
    const { engine, log } = this;
    this.following = feed({
      log,
      connect: () => this.connect(),
      alive: () => engine === undefined || engine.running,
      onRetry: (error) => this.failed(error),
      onProgress: () => {
        this.trouble = undefined;
      },
    });
    this.following.done.catch((error: unknown) => this.failed(error));
  }

  /** Resolves once the engine has answered or failed for the first time. */
  async address(): Promise<string | undefined> {
    if (!this.engine) return undefined;
    await this.firstAnswer;
    return this.sink ? this.engine.url : undefined;
  }

  position(): number {
    return this.following?.position() ?? 0;
  }

  status(last: number): PartStatus {
    const part = { part: 'analytics', optional: true };
    if (!this.config.analytics) return { ...part, ready: true, detail: 'switched off' };
    const behind = `${last - this.position()} events behind`;
    const { trouble } = this;
    if (trouble) return { ...part, ready: false, detail: `${behind}; ${trouble.code}: ${trouble.message}` };
    return { ...part, ready: this.sink !== undefined, detail: this.sink ? behind : 'starting' };
  }

  async chart(name: ChartName, from: string, to: string): Promise<readonly object[]> {
    if (!this.config.analytics) throw new AgonError('ANALYTICS.OFF', OFF);
    if (!this.sink) throw this.trouble ?? new AgonError('ANALYTICS.UNAVAILABLE', 'Analytics are starting; ask again.');
    return this.sink.query(charts[name].sql, { from, to });
  }

  async stop(): Promise<void> {
    // The engine first: an insert that is under way would take its time, and is sent again after the next start.
    const stopped = this.engine?.stop();
    await this.following?.stop();
    await stopped;
    await this.sink?.close();
    if (this.engine) rmSync(this.paths.analyticsAddress, { force: true });
  }

  private async connect(): Promise<ClickHouseSink> {
    const { engine, config } = this;
    await engine?.ensure();
    const sink = new ClickHouseSink(clickHouseAt(engine?.writerUrl ?? `${config.clickhouseUrl}`));
    await sink.migrate(config.analyticsDays);
    if (engine) writeFileSync(this.paths.analyticsAddress, JSON.stringify({ url: engine.url, pid: engine.pid }));
    await this.sink?.close();
    this.sink = sink;
    this.trouble = undefined;
    this.answered();
    return sink;
  }

  private failed(error: unknown): void {
    this.trouble = asAgonError(error);
    this.answered();
    this.onRetry(error);
  }
}
