import {
  assertSeats,
  type Cells,
  defaultLimits,
  gameNamed,
  gameNames,
  houseAccounts,
  uploadedAgent,
} from '../sandbox-runner/index.js';
import type { Config } from '../services/runtime/settings.js';
import type { GatewayPorts } from './ports.js';

/** What the configuration and the runner say about matches and agents. */
export function rulesOf(config: Config, cells: Cells) {
  return {
    rakeBps: config.rakeBps,
    houseAccounts,
    depositClearingS: config.depositClearingS,
    disputeWindowMs: config.disputeWindowHours * 3_600_000,
    computeCents: `${config.computePrice}`,
    spectatorDelayMs: config.spectatorDelayMs,
    sourceBytesMax: defaultLimits.sourceBytes,
    games: gameNames,
    assertSeats: (game, agents) => assertSeats(gameNamed(game), agents),
    readAgent: uploadedAgent,
    checkSource: (source, runtime) => cells.check(source, runtime),
  } satisfies Partial<GatewayPorts>;
}
