/** The public face of the sandbox runner; nothing outside this folder imports anything deeper. */
export { type HouseAgent, houseAgentSource, houseAgents } from './agents/index.js';
export { ContainerDriver } from './drivers/container.js';
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
export { ProcessDriver, whyNoProcessSandboxes } from './drivers/process.js';
export { executable, type Language, type Runtime, runtimeFor } from './drivers/runtimes.js';
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
export { type Allowance, allowanceOf, defaultLimits, type Limits, limitsFrom, type Meter } from './limits.js';
export { CellPool, type PoolOptions } from './pool.js';
export { codeDigest, type MatchJob } from './protocol.js';
export {
  type MatchOutcome,
  type MatchRecord,
  type OutcomeReason,
  playMatch,
  type SeatUsage,
  type TurnRecord,
} from './referee.js';
export { type Replay, replay } from './replay.js';
export { type ArenaPort, type RunnerOptions, startRunner, type WorkOrder } from './runner.js';
