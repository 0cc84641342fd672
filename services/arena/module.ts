import { defineContext } from '../kernel/index.js';
import {
  ClaimMatch,
  EscrowBounty,
  EscrowCompute,
  EscrowStake,
  ExpireLease,
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
    ReportMatch,
    FailAttempt,
    ReleaseMatch,
    VoidMatch,
    ReverseMatch,
  ],
  policies: [escrow],
});
