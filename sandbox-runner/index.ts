/** The public face of the sandbox runner; nothing outside this folder imports anything deeper. */
export { type HouseAgent, houseAgentSource, houseAgents } from './agents/index.js';
export type { ArenaPort, Attempt, SignedReport, WorkOrder } from './arena-port.js';
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
  connectFour,
  type Game,
  gameNamed,
  gameNames,
  type Observation,
  type Outcome,
  ticTacToe,
} from './games/index.js';
export { type ConnectOptions, GrpcArena } from './grpc-port.js';
export { keyIn } from './key.js';
export { defaultLimits, type Limits, limitsFrom } from './limits.js';
export { CellPool, type PoolOptions } from './pool.js';
export { codeDigest, type MatchJob, type Progress } from './protocol.js';
export {
  type MatchOutcome,
  type MatchRecord,
  type OutcomeReason,
  playMatch,
  type SeatUsage,
  type TurnRecord,
} from './referee.js';
export { type Replay, replay } from './replay.js';
export { signedReport } from './report.js';
export { type Runner, type RunnerOptions, startRunner } from './runner.js';
export { RunnerLogs, serveRunner } from './server.js';
