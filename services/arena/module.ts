import { defineContext } from '../kernel/index.js';
import {
  AbandonMatch,
  ClaimMatch,
  EscrowBounty,
  EscrowCompute,
  EscrowStake,
  ExpireLease,
  ExpireMatch,
  ExtendLease,
  FailAttempt,
  ProposeMatch,
  RefuseStake,
  ReleaseMatch,
  ReportMatch,
  ReverseMatch,
  VoidMatch,
} from './commands.js';
import { arenaDecider } from './decider.js';
import { arenaEvents } from './events.js';
import { escrow } from './policies.js';

export const arena = defineContext({
  name: 'arena',
  streams: 'match',
  events: arenaEvents,
  decider: arenaDecider,
  commands: [
    ProposeMatch,
    EscrowStake,
    EscrowCompute,
    EscrowBounty,
    RefuseStake,
    ClaimMatch,
    ExtendLease,
    ExpireLease,
    ExpireMatch,
    ReportMatch,
    FailAttempt,
    ReleaseMatch,
    AbandonMatch,
    VoidMatch,
    ReverseMatch,
  ],
  policies: [escrow],
});
