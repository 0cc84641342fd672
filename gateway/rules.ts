import {
  assertSeats,
  type Cells,
  defaultLimits,
  gameNamed,
  gameNames,
  houseAccounts,
  uploadedAgent,
} from '../sandbox-runner/index.js';
import type { AgentRuntime } from '../services/kernel/index.js';
import type { Config } from '../services/runtime/settings.js';

export type Rules = ReturnType<typeof rulesOf>;

/** What the configuration and the runner say about matches and agents. */
export const rulesOf = (config: Config, cells: Cells) => ({
  rakeBps: config.rakeBps,
  /** No plan limits them. */
  houseAccounts: houseAccounts as readonly string[],
  /** How long after a deposit its money can be withdrawn. */
  depositClearingS: config.depositClearingS,
  disputeWindowMs: config.disputeWindowHours * 3_600_000,
  /** What a seat of a match costs in COMPUTE. */
  computeCents: `${config.computePrice}`,
  /** How long after it happened spectators see a turn. */
  spectatorDelayMs: config.spectatorDelayMs,
  sourceBytesMax: defaultLimits.sourceBytes as number,
  games: gameNames as readonly string[],
  /** Refuses a number of agents that the game cannot be played by. */
  assertSeats: (game: string, agents: number) => assertSeats(gameNamed(game), agents),
  /** Code out of what was uploaded: a file, or an archive of several. */
  readAgent: uploadedAgent,
  /** Refuses code that cannot run, before it becomes an agent. */
  checkSource: (source: string, runtime: AgentRuntime) => cells.check(source, runtime),
});
