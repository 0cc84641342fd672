import type { ArenaEvent } from '../../services/arena/index.js';
import type { RunnerEvent } from '../../services/runners/index.js';
import { rowRef } from '../engine/table.js';
import { type Change, changing, defineView, type Facts, type Reaction, type Rows } from '../engine/view.js';
import { leases, type RunnerRow, runners } from './table.js';

type LeaseEvent = Facts<{ matchId: string; runnerId: string; attempt: number; leaseUntil: string }>;

/** Matches of the first days name runners that never registered; those are nobody's to show. */
const runner = <Data extends { runnerId: string }>(change: Change<Data, RunnerRow>) =>
  changing(runners, ({ runnerId }: Data) => runnerId, change);

const leased = (claimed: number): Reaction<LeaseEvent> => {
  const seen = runner((_data: LeaseEvent['data'], row, seenAt) => ({ seenAt, claimed: row.claimed + claimed }));
  return {
    reads: ({ data }) => [rowRef(runners, data.runnerId), rowRef(leases, data.matchId)],
    apply: (event, rows) => {
      const { matchId, runnerId, attempt, leaseUntil } = event.data;
      rows.put(leases, { matchId, runnerId, attempt, leaseUntil });
      seen.apply(event, rows);
    },
  };
};

const letGo = {
  reads: ({ data }: { data: { matchId: string } }) => [rowRef(leases, data.matchId)],
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
    RunnerRevoked: runner(({ reason }) => ({ status: 'revoked', reason })),
    MatchClaimed: leased(1),
    LeaseExtended: leased(0),
    MatchPlayed: runner((_data, { played }, seenAt) => ({ seenAt, played: played + 1 })),
    MatchReleased: letGo,
    MatchRequeued: letGo,
    MatchSettled: letGo,
    MatchVoided: letGo,
  },
});
