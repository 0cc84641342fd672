import type { Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import type { ChartName } from '../projections/analytics/charts.js';
import type { AgentRuntime } from '../services/agents/index.js';
import type { Actor, Artifacts, Clock, Ids } from '../services/kernel/index.js';

/** One part of the arena that must work before the gateway says it is ready. */
export interface PartStatus {
  readonly part: string;
  readonly ready: boolean;
  readonly detail: string;
  /** The arena is ready without it. */
  readonly optional?: boolean;
}

/** Answers for the dashboard's charts; refuses with ANALYTICS.* while there are none. */
export interface Analytics {
  chart(name: ChartName, from: string, to: string): Promise<readonly object[]>;
}

/** What the gateway needs from whoever puts the arena together. */
export interface GatewayPorts {
  readonly database: DataSource;
  readonly analytics: Analytics;
  readonly artifacts: Artifacts;
  readonly metrics: Registry;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly rakeBps: number;
  readonly games: readonly string[];
  /** Refuses a number of agents that the game cannot be played by. */
  assertSeats(game: string, agents: number): void;
  readonly version: string;
  /** Refuses code that cannot run, before it becomes an agent. */
  checkSource(
    source: string,
    runtime: AgentRuntime,
  ): Promise<{ ok: true } | { ok: false; rule: string; detail: string }>;
  readonly sourceBytesMax: number;
  status(): Promise<readonly PartStatus[]>;
  /** Resolves when what stands at this position can be read, so that callers see what they have just done. */
  visible(position: number): Promise<void>;
  /** Hears of every error that is our own fault. */
  onInternalError(error: unknown): void;
  /** The actor behind a bearer token, if it is one of ours. */
  actorOf(token: string): Actor | undefined;
}

/** The provider token of the ports. */
export const PORTS = Symbol('gateway ports');
