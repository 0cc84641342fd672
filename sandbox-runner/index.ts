/** The public face of the sandbox runner; nothing outside this folder imports anything deeper. */
export { type HouseAgent, houseAgentSource, houseAgents } from './agents/index.js';
export type {
  AgentInstance,
  Driver,
  Fault,
  FaultRule,
  LoadOptions,
  Reply,
  SourceCheck,
  Usage,
} from './drivers/driver.js';
export { faultRules } from './drivers/driver.js';
export { WasmDriver } from './drivers/wasm.js';
export {
  type Action,
  type AnyGame,
  assertSeats,
  chess,
  connectFour,
  type Game,
  gameNamed,
  gameNames,
  isLegal,
  leducHoldem,
  type Observation,
  type Outcome,
  prisoners,
  ticTacToe,
} from './games/index.js';
export { defaultLimits, type Limits, limitsFrom } from './limits.js';
export { CellPool, type PoolOptions } from './pool.js';
export { codeDigest, type MatchJob } from './protocol.js';
export {
  type ForfeitReason,
  type MatchOutcome,
  type MatchRecord,
  playMatch,
  type SeatUsage,
  type TurnRecord,
} from './referee.js';
export { type Replay, replay } from './replay.js';
export { type ArenaPort, type RunnerOptions, startRunner, type WorkOrder } from './runner.js';
