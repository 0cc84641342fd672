import type { ArenaEvent } from '../../services/arena/index.js';
import type { RecordedEvent } from '../../services/kernel/index.js';
import type { RunnerEvent } from '../../services/runners/index.js';
import { rowRef } from '../engine/table.js';
import { defineView, type Rows } from '../engine/view.js';
import { leases, type RunnerRow, runners } from './table.js';

type AttemptEvent = RecordedEvent & { data: { matchId: string; runnerId: string; attempt: number } };
type LeaseEvent = AttemptEvent & { data: { leaseUntil: string } };

const itsRunner = ({ data }: { data: { runnerId: string } }) => [rowRef(runners, data.runnerId)];
const both = ({ data }: AttemptEvent) => [rowRef(runners, data.runnerId), rowRef(leases, data.matchId)];
const itsLease = ({ data }: { data: { matchId: string } }) => [rowRef(leases, data.matchId)];

/** Matches of the first days name runners that never registered; those are nobody's to show. */
const change = (rows: Rows, runnerId: string, by: (runner: RunnerRow) => Partial<RunnerRow>) => {
  const runner = rows.get(runners, runnerId);
  if (runner) rows.put(runners, { ...runner, ...by(runner) });
};

function hold({ data, time }: LeaseEvent, rows: Rows, claimed: number): void {
  const { matchId, runnerId, attempt, leaseUntil } = data;
  rows.put(leases, { matchId, runnerId, attempt, leaseUntil });
  change(rows, runnerId, (runner) => ({ seenAt: time, claimed: runner.claimed + claimed }));
}

const letGo = {
  reads: itsLease,
  apply: ({ data }: { data: { matchId: string } }, rows: Rows) => {
    if (rows.get(leases, data.matchId)) rows.remove(leases, data.matchId);
  },
};

/** Who plays matches, and which they have in hand. */
export const runnersView = defineView<ArenaEvent | RunnerEvent>({
  name: 'runners',
  version: 1,
  tables: [runners, leases],
  on: {
    RunnerRegistered: {
      apply: ({ data, time }, rows) => {
        const { runnerId, publicKey } = data;
        rows.put(runners, {
          runnerId,
          publicKey,
          status: 'registered',
          reason: '',
          registeredAt: time,
          seenAt: time,
          claimed: 0,
          played: 0,
        });
      },
    },
    RunnerRevoked: {
      reads: itsRunner,
      apply: ({ data }, rows) => change(rows, data.runnerId, () => ({ status: 'revoked', reason: data.reason })),
    },
    MatchClaimed: { reads: both, apply: (event, rows) => hold(event, rows, 1) },
    LeaseExtended: { reads: both, apply: (event, rows) => hold(event, rows, 0) },
    MatchPlayed: {
      reads: itsRunner,
      apply: ({ data, time }, rows) =>
        change(rows, data.runnerId, ({ played }) => ({ seenAt: time, played: played + 1 })),
    },
    MatchReleased: letGo,
    MatchRequeued: letGo,
    MatchSettled: letGo,
    MatchVoided: letGo,
  },
});
