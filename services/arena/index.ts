export {
  AbandonMatch,
  ClaimMatch,
  ExpireLease,
  ExpireMatch,
  ExtendLease,
  FailAttempt,
  ProposeMatch,
  ReleaseMatch,
  ReportMatch,
  ReverseMatch,
  VoidMatch,
} from './commands.js';
export {
  type ArenaEvent,
  arenaEvents,
  type EscrowDeclined,
  type MatchExecution,
  type MatchOutcome,
  type MatchProposed,
  type MatchReversed,
  type MatchSettled,
  type MatchVoided,
  type Turn,
} from './events.js';
export { arena } from './module.js';
export { type Pairing, pairUp, type Ticket } from './pairing.js';
export { type Attempted, attemptText, isAuthentic } from './report.js';
export { type Patience, WaitingMatches } from './waiting.js';
export { WorkQueue } from './work.js';
