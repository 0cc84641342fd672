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
  AgonError,
  type Artifacts,
  type Clock,
  type Command,
  type EventStore,
  type Handled,
  type Ids,
  type Load,
  type Quotas,
  type RateLimits,
  type RecordedEvent,
} from '../services/kernel/index.js';
import type { PaymentProvider } from '../services/payments/index.js';
import type { DeadLetters } from '../services/runtime/engines.js';
import type { PartStatus } from '../services/runtime/status.js';
import type { Webhook, WebhookState } from '../services/webhooks/index.js';
import type { Changes } from './answers.js';
import type { Identities } from './auth/identity.js';
import type { LiveMatches } from './live/matches.js';
import type { Seen } from './observe.js';
import type { Rules } from './rules.js';

/** An agent from outside that waits for an opponent, and what for. */
export interface WaitingAgent {
  readonly agentId: string;
  readonly accountId: string;
  readonly game: string;
  readonly stakeCents: string;
  readonly currency: string;
  readonly reason: string;
}

/** Answers for the dashboard's charts; refuses with ANALYTICS.* while there are none. */
export interface Analytics {
  chart(name: ChartName, from: string, to: string): Promise<readonly object[]>;
}

/** What can be done with webhooks beside registering them. */
export interface WebhookPort {
  list(): Promise<WebhookState>;
  /** Shown to whoever registered it, once. */
  secretOf(webhookId: string): string;
  /** Refuses addresses that lead inside, as far as the address alone tells. */
  assertAllowed(url: string): void;
  /** One attempt, now. */
  test(webhook: Webhook): Promise<{ delivered: boolean; status: number | null; detail: string }>;
}

/** What the gateway needs from whoever puts the arena together. */
export interface GatewayPorts extends Rules {
  readonly database: DataSource;
  readonly analytics: Analytics;
  readonly artifacts: Artifacts;
  readonly metrics: Registry;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Who takes real money; undefined where there are play credits only. */
  readonly payments: PaymentProvider | undefined;
  /** What happened in a match, in order, as the log has it. */
  matchEvents(matchId: string): Promise<readonly RecordedEvent[]>;
  /** The log itself, to be followed. */
  readonly log: Pick<EventStore, 'lastPosition' | 'readAll' | 'subscribe'>;
  /** How often the rows of each view have changed. */
  readonly changes: Changes;
  /** Carries a command out, on the one write path. */
  execute(command: Command): Promise<Handled>;
  /** States by the log itself. */
  readonly load: Load;
  /** What a match was proposed with, by its own events, and where in the log that is. */
  proposalOf(matchId: string): Promise<{ readonly data: MatchProposed['data']; readonly position: number } | undefined>;
  readonly version: string;
  readonly projections: Pick<Projections, 'list' | 'status' | 'deadLetters' | 'ask'>;
  /** What policies gave up on. */
  readonly letters: DeadLetters;
  readonly boards: HotBoards;
  /** Bradley-Terry with intervals; takes its time, off the hot path. */
  strengths(board: BoardRequest): Promise<readonly Strength[]>;
  status(): Promise<readonly PartStatus[]>;
  /** Resolves when what stands at this position can be read, so that callers see what they have just done. */
  visible(position: number): Promise<void>;
  /** Hears of every request once it was answered. */
  observe?(seen: Seen): void;
  /** Hears of every error that is told to a caller, by its code. */
  onProblem?(door: Seen['door'], code: string): void;
  /** Hears of every error that is our own fault. */
  onInternalError(error: unknown): void;
  readonly limits: RateLimits;
  /** What plans allow so many of, counted together by every gateway that shares it. */
  readonly quotas: Quotas;
  readonly live: LiveMatches;
  /** Agents from outside that wait for an opponent, longest first. */
  waiting(): Promise<readonly WaitingAgent[]>;
  readonly webhooks: WebhookPort;
  /** Who people and API keys are. */
  readonly identities: Identities;
  /** The actor behind a token of the machine itself. */
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
