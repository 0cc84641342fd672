import { auditMoney } from '../../projections/balances/audit.js';
import { withFolder } from '../harness/folders.js';
import { endWithin, startChild } from './children.js';
import { countIn, leftovers, verifiedLog } from './outcomes.js';
import type { Run } from './run.js';
import { between, type Random, seededRandom } from './workload.js';

/** Where a process is killed: around the nth command of this type. */
export interface Point {
  readonly command: MoneyCommand;
  readonly nth: number;
  readonly when: 'before' | 'during' | 'after';
}

/** What is under way when a process is killed. */
export type Phase = 'escrow' | 'settlement' | 'webhook' | 'payout' | 'refund';

/** The commands that move money, or decide that it moves. Whoever adds such a command adds it here. */
export const COMMANDS = {
  DepositFunds: 'escrow',
  HoldFunds: 'escrow',
  EscrowStake: 'escrow',
  EscrowBounty: 'escrow',
  RefuseStake: 'escrow',
  VoidHold: 'escrow',
  BuyCredits: 'escrow',
  ReportMatch: 'settlement',
  PostHold: 'settlement',
  AwardBounty: 'settlement',
  ReverseMatch: 'settlement',
  ReverseSettlement: 'settlement',
  ApproveWithdrawal: 'payout',
  RecordTransfer: 'payout',
} as const satisfies Record<string, Phase>;
type MoneyCommand = keyof typeof COMMANDS;
const NTH_MAX = 4;
const KILLS = 3;
const STUCK_MS = 60_000;

export const settle: Run = {
  name: 'settle',
  about: 'a house that plays for money, killed around escrow, settlement, payout and reversal',
  holds: 'money sums to zero and no match pays a wallet twice',
  start: (seeds) => seeds(runSeed),
};

/** One seed: a house that plays for money, killed at seeded points and started again, then left to finish. */
function runSeed(seed: number) {
  const random = seededRandom('settle', seed);
  const failures: string[] = [];
  const killed: Phase[] = [];
  return withFolder(async (folder) => {
    for (;;) {
      // A point that is never met lets the process come to its end, and so does none.
      const point = killed.length < KILLS ? somePoint(random) : undefined;
      const house = startChild('house', [folder, `${seed}`, ...(point ? [JSON.stringify(point)] : [])]);
      const how = await endWithin(house, STUCK_MS);
      if (point && how === 'SIGKILL') {
        killed.push(COMMANDS[point.command]);
        continue;
      }
      if (how !== 'exit 0') failures.push(`It ended with ${how}: ${house.errors}`);
      break;
    }
    const log = await verifiedLog(folder, failures);
    return {
      kills: killed.length,
      killed,
      settled: countIn(log, 'MatchSettled'),
      payouts: countIn(log, 'FundsCredited', 'BountyAwarded'),
      failures: [...failures, ...auditMoney(log), ...leftovers(log)],
    };
  });
}

const names = Object.keys(COMMANDS) as MoneyCommand[];
export const somePoint = (random: Random): Point => ({
  command: names[between(random, 0, names.length - 1)] ?? 'HoldFunds',
  nth: between(random, 1, NTH_MAX),
  when: (['before', 'during', 'after'] as const)[between(random, 0, 2)] ?? 'before',
});
