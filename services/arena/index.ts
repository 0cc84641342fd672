export { ClaimMatch, FailAttempt, ProposeMatch, ReportMatch, VoidMatch } from './commands.js';
export {
  type ArenaEvent,
  arenaEvents,
  type MatchExecution,
  type MatchOutcome,
  type MatchProposed,
  type MatchSettled,
  type MatchVoided,
  type Turn,
} from './events.js';
export { arena } from './module.js';
