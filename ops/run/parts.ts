import { eventstoreServer } from '../../gateway/eventstore/part.js';
import { localArena, runnerService } from '../../gateway/grpc/part.js';
import { gateway } from '../../gateway/part.js';
import { playService } from '../../gateway/play/part.js';
import { webhooks } from '../../gateway/webhooks/part.js';
import { analytics } from '../../projections/analytics/part.js';
import { projections } from '../../projections/part.js';
import { runner } from '../../sandbox-runner/part.js';
import { matchExpiry, matchQueue, matchQueueOf } from '../../services/arena/part.js';
import { contexts } from '../../services/index.js';
import { paymentCalls } from '../../services/payments/part.js';
import { deadLetters } from '../../services/runtime/dead-letters.js';
import type { Part } from '../../services/runtime/part.js';
import { policiesOfContexts } from '../../services/runtime/policies.js';
import { relay } from '../../services/runtime/relay.js';
import type { Config } from '../../services/runtime/settings.js';
import { writeSide } from '../../services/runtime/write-side.js';
import { holdExpiry } from '../../services/wallet/part.js';
import type { ProcessName } from './names.js';

/** Contexts whose policies have a process of their own; those of all others run with the arena's. */
const ELSEWHERE = ['wallet', 'payments'];
const theOthers = contexts.map(({ name }) => name).filter((name) => !ELSEWHERE.includes(name));

/** What each process of a cluster runs, and where it listens unless it is told. */
export const processes = {
  eventstore: { parts: [eventstoreServer], ownFolder: true },
  relay: { parts: [relay] },
  gateway: { parts: [gateway, webhooks] },
  arena: { parts: [policiesOfContexts(...theOthers), matchQueue, matchExpiry, runnerService], grpcPort: 4601 },
  play: { parts: [matchQueueOf('table'), playService], playPort: 4602 },
  wallet: { parts: [policiesOfContexts('wallet'), holdExpiry] },
  payments: { parts: [policiesOfContexts('payments'), paymentCalls] },
  projections: { parts: [projections] },
  analytics: { parts: [analytics] },
  runner: { parts: [runner] },
} as const satisfies Readonly<Record<ProcessName, Process>>;

export interface Process extends Partial<Pick<Config, 'grpcPort' | 'playPort'>> {
  readonly parts: readonly Part[];
  /** Stands on the log of its own folder, which nobody else has, and so runs by itself. */
  readonly ownFolder?: true;
}

/** All of it in one process, as far as the configuration wants it, without what listens. */
export function embeddedParts({ runner: inside }: Config): readonly Part[] {
  return [
    writeSide,
    ...contexts.filter(({ policies }) => policies).map(({ name }) => policiesOfContexts(name)),
    projections,
    matchQueue,
    matchExpiry,
    holdExpiry,
    paymentCalls,
    deadLetters,
    webhooks,
    ...(inside ? [localArena, runner] : []),
  ];
}

/** What listens. */
export function embeddedServers({ grpcPort, eventstorePort, playPort }: Config): readonly Part[] {
  return [
    gateway,
    ...(grpcPort === undefined ? [] : [runnerService]),
    ...(eventstorePort === undefined ? [] : [eventstoreServer]),
    ...(playPort === undefined ? [] : [playService]),
    analytics,
  ];
}
