/** The public face of the sandbox runner; nothing outside this folder imports anything deeper. */
export { type HouseAgent, houseAgentNamed, houseAgentSource, houseAgents } from './agents/index.js';
export type { ArenaPort, Attempt, SignedReport, WorkOrder } from './arena-port.js';
export { type AgentCode, archivedAgent, folderAgent, uploadedAgent } from './bundles/archive.js';
export { bootCode, bundleCode, bundleLimits } from './bundles/bundle.js';
export { Cells } from './cells.js';
export { ContainerDriver } from './drivers/container.js';
export type {
  AgentInstance,
  Driver,
  EgressDoor,
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
export { Egress, type EgressPorts } from './egress/egress.js';
export { type EgressEntry, entryLine } from './egress/log.js';
export { type EgressPolicy, type Grant, policyFrom, readPolicy } from './egress/policy.js';
export { addressOf, isReachable } from './egress/target.js';
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
export { type ConnectOptions, GrpcArena } from './grpc-port.js';
export { keyIn } from './key.js';
export { type Allowance, allowanceOf, defaultLimits, type Limits, limitsFrom, type Meter } from './limits.js';
export type { PoolOptions } from './pool.js';
export { codeDigest, type MatchAgent, type MatchJob, type Progress } from './protocol.js';
export {
  type EgressUsage,
  type ForfeitReason,
  type MatchOutcome,
  type MatchRecord,
  playMatch,
  type SeatUsage,
  type TurnRecord,
} from './referee.js';
export { type Replay, replay } from './replay.js';
export { signedReport } from './report.js';
export { type Runner, type RunnerOptions, startRunner } from './runner.js';
export type { SeatOrder } from './seat-cells.js';
export { RunnerLogs, serveRunner } from './server.js';
export { type Answer, type Chair, type Outside, Table } from './table.js';
