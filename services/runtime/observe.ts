import type { Logger } from 'pino';
import type { Seen } from '../../gateway/observe.js';
import type { Bus, Clock, Command, RecordedEvent, SealedEvent } from '../kernel/index.js';
import type { Metrics } from './metrics.js';
import { version } from './package.js';
import type { Config } from './settings.js';

/** Events that a group has taken in. */
export interface DeliveryReport {
  readonly group: string;
  readonly events: readonly RecordedEvent[];
  /** By the clock that only goes forward. */
  readonly startedMs: number;
  readonly ms: number;
  /** By the calendar. */
  readonly endedMs: number;
}

/** Those who are told what happens: metrics always, traces and the log of requests if they are wanted. */
export interface Telemetry {
  onSeen(seen: Seen): void;
  onHandled(command: Command, outcome: string, ms: number): void;
  onAppended(command: Command, events: readonly SealedEvent[], ms: number): void;
  /** The same bus, watched. A view is told of every event; only those in `types` say something about it. */
  bus(bus: Bus, types?: (group: string) => ReadonlySet<string> | undefined): Bus;
  close(): Promise<void>;
}

/** Puts together who watches. What is off costs nothing: it is not called. */
export async function telemetryFrom(config: Config, metrics: Metrics, log: Logger, clock: Clock): Promise<Telemetry> {
  const { otlpEndpoint: endpoint, traceRatio: ratio } = config;
  // Its libraries take a while to load, and most arenas do without them.
  const tracing = endpoint && new (await import('./tracing.js')).Tracing({ endpoint, ratio, version });
  const said = log.isLevelEnabled('info') ? accessLog(log) : undefined;
  const traced = tracing || undefined;
  const onDelivered = both(metrics.onDelivered, traced?.onDelivered);
  return {
    onSeen: both(both(metrics.onSeen, traced?.onSeen), said),
    onHandled: both(
      both(metrics.onHandled, traced?.onHandled),
      log.isLevelEnabled('debug') ? commandLog(log) : undefined,
    ),
    onAppended: both(metrics.onAppended, traced?.onAppended),
    bus: (bus, types) => watchedBus(bus, clock, onDelivered, types),
    close: async () => traced?.close(),
  };
}

function both<Args extends unknown[]>(first: (...args: Args) => void, second: ((...args: Args) => void) | undefined) {
  if (!second) return first;
  return (...args: Args) => {
    first(...args);
    second(...args);
  };
}

function watchedBus(
  bus: Bus,
  clock: Clock,
  tell: (delivered: DeliveryReport) => void,
  types?: Parameters<Telemetry['bus']>[1],
): Bus {
  return {
    close: () => bus.close(),
    consume: (options, handler) => {
      const { group } = options;
      const wanted = types?.(group);
      return bus.consume(options, async (events) => {
        const startedMs = performance.now();
        await handler(events);
        const mine = wanted ? events.filter(({ type }) => wanted.has(type)) : events;
        if (mine.length === 0) return;
        const ms = performance.now() - startedMs;
        tell({ group, events: mine, startedMs, ms, endedMs: Date.parse(clock()) });
      });
    },
  };
}

/** Probes come every few seconds and say nothing. */
const PROBES = ['GET /healthz', 'GET /readyz', 'GET /metrics'];

const accessLog = (log: Logger) => (seen: Seen) => {
  const { door, operation, outcome, ms, requestId, correlationId, actorId } = seen;
  const level = PROBES.includes(operation) ? 'debug' : outcome === 'failed' ? 'error' : 'info';
  log[level]({ door, operation, outcome, ms: Math.round(ms * 10) / 10, requestId, correlationId, actorId }, 'request');
};

const commandLog =
  (log: Logger) =>
  ({ type, meta }: Command, outcome: string, ms: number) => {
    const { id: commandId, correlationId, causationId, actor } = meta;
    const took = Math.round(ms * 10) / 10;
    log.debug({ type, outcome, ms: took, commandId, correlationId, causationId, actorId: actor.id }, 'command');
  };
