import type { Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import { HOUSE_ACCOUNTS } from '../ops/run/ladder.js';
import type { HotBoards } from '../projections/leaderboards/hot.js';
import { Strengths } from '../projections/leaderboards/strengths.js';
import { upcast } from '../projections/views.js';
import {
  assertSeats,
  type Cells,
  defaultLimits,
  gameNamed,
  gameNames,
  uploadedAgent,
} from '../sandbox-runner/index.js';
import type { MatchProposed } from '../services/arena/index.js';
import type { Actor, Artifacts, Clock, EventStore, Ids, Load, Quotas, RateLimits } from '../services/kernel/index.js';
import type { PaymentProvider } from '../services/payments/index.js';
import { type DataFolder, sameToken } from '../services/runtime/data-folder.js';
import { version } from '../services/runtime/package.js';
import type { Config } from '../services/runtime/settings.js';
import type { LiveMatches } from './live/matches.js';
import type { GatewayPorts } from './ports.js';

export interface GatewayParts {
  readonly config: Config;
  readonly store: EventStore;
  readonly load: Load;
  readonly database: DataSource;
  readonly artifacts: Artifacts;
  readonly metrics: Registry;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly provider: PaymentProvider | undefined;
  readonly boards: HotBoards;
  readonly limits: RateLimits & Quotas;
  readonly live: LiveMatches;
  readonly cells: Cells;
}

/** What a gateway stands on wherever it runs; whoever puts it together adds what its deployment does its own way. */
export function gatewayPorts(parts: GatewayParts) {
  const { config, store, cells, provider, ...same } = parts;
  const strengths = new Strengths(same.database);
  return {
    ...same,
    quotas: same.limits,
    rakeBps: config.rakeBps,
    payments: provider,
    houseAccounts: HOUSE_ACCOUNTS,
    depositClearingS: config.depositClearingS,
    disputeWindowMs: config.disputeWindowHours * 3_600_000,
    computeCents: `${config.computePrice}`,
    matchEvents: (matchId) => store.readStream(`match-${matchId}`),
    log: store,
    readAgent: uploadedAgent,
    proposalOf: async (matchId) => {
      const [first] = await store.readStream(`match-${matchId}`, { limit: 1 });
      return first && (upcast(first) as never as MatchProposed & { position: number });
    },
    games: gameNames,
    assertSeats: (game, agents) => assertSeats(gameNamed(game), agents),
    version,
    spectatorDelayMs: config.spectatorDelayMs,
    strengths: (board) => strengths.of(board),
    sourceBytesMax: defaultLimits.sourceBytes,
    checkSource: (source, runtime) => cells.check(source, runtime),
  } satisfies Partial<GatewayPorts>;
}

/** Who shows which token: those of the configuration, or else the folder's. */
export function tokensOf(config: Config, folder: DataFolder) {
  const operator = config.operatorToken?.reveal() ?? folder.operatorToken();
  const runner = config.runnerToken?.reveal() ?? folder.runnerToken();
  const actorOf = (given: string): Actor | undefined => {
    if (sameToken(given, operator)) return { id: 'operator', role: 'operator' };
    return sameToken(given, runner) ? { id: 'runner', role: 'runner' } : undefined;
  };
  return { operator, runner, actorOf };
}
