import type { Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import type { ChartName } from '../projections/analytics/charts.js';
import type { Projections } from '../projections/engine/projections.js';
import type { Strength } from '../projections/leaderboards/bradley-terry.js';
import type { HotBoards } from '../projections/leaderboards/hot.js';
import type { BoardRequest } from '../projections/leaderboards/query.js';
import type { MatchProposed } from '../services/arena/index.js';
import {
  type Actor,
  type AgentRuntime,
  AgonError,
  type Artifacts,
  type Clock,
  type Ids,
  type RateLimits,
} from '../services/kernel/index.js';
import type { PaymentProvider } from '../services/payments/index.js';
import type { WalletState } from '../services/wallet/index.js';

/** One part of the arena that must work before the gateway says it is ready. */ import type { LiveMatches } from './live/matches.js';

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
  /** Who takes real money; undefined where there are play credits only. */
  readonly payments: PaymentProvider | undefined;
  /** Accounts of the house: no plan limits them. */
  readonly houseAccounts: readonly string[];
  /** How long after a deposit its money can be withdrawn. */
  readonly depositClearingS: number;
  readonly disputeWindowMs: number;
  /** What a seat of a match costs in COMPUTE. */
  readonly computeCents: string;
  /** What happened to an account, in order. */
  accountEvents(accountId: string): Promise<readonly unknown[]>;
  /** A wallet by its own events. */
  walletOf(accountId: string): Promise<WalletState>;
  /** What a match was proposed with, by its own events, and where in the log that is. */
  proposalOf(matchId: string): Promise<{ readonly data: MatchProposed['data']; readonly position: number } | undefined>;
  readonly games: readonly string[];
  /** Refuses a number of agents that the game cannot be played by. */
  assertSeats(game: string, agents: number): void;
  readonly version: string;
  readonly projections: Pick<Projections, 'list' | 'status' | 'deadLetters' | 'rebuild'>;
  readonly boards: HotBoards;
  /** Bradley-Terry with intervals; takes its time, off the hot path. */
  strengths(board: BoardRequest): Promise<readonly Strength[]>;
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
  readonly limits: RateLimits;
  readonly live: LiveMatches;
  /** How long after it happened spectators see a turn. */
  readonly spectatorDelayMs: number;
  /** The actor behind a bearer token, if it is one of ours. */
  actorOf(token: string): Actor | undefined;
}

/** The payment provider, or a refusal that says how to get one. */
export function providerIn({ payments }: Pick<GatewayPorts, 'payments'>): PaymentProvider {
  if (payments) return payments;
  throw new AgonError(
    'PAYMENTS.NOT_CONFIGURED',
    'This arena has play credits only. Set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET, or start it with --stripe-sandbox.',
  );
}

/** The provider token of the ports. */
export const PORTS = Symbol('gateway ports');
