import { spawn } from 'node:child_process';
import process, { execPath } from 'node:process';
import { auditMoney } from '../../projections/balances/audit.js';
import { upcast } from '../../projections/views.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import type { RecordedEvent } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { compiled } from '../../services/runtime/package.js';
import { withFolder } from '../bench/folders.js';
import { verifyStore } from '../cli/verify.js';
import { readLog } from './checks.js';
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
const COMMANDS = {
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

export interface SettleResult {
  readonly seed: number;
  /** What each process that was killed was doing. */
  readonly killedIn: readonly Phase[];
  readonly settled: number;
  readonly payouts: number;
  readonly failures: readonly string[];
}

/** One seed: a house that plays for money, killed at seeded points and started again, then left to finish. */
export async function runSettleSeed(seed: number): Promise<SettleResult> {
  const random = seededRandom('settle', seed);
  const failures: string[] = [];
  const killedIn: Phase[] = [];
  let log: readonly RecordedEvent[] = [];
  await withFolder(async (folder) => {
    for (;;) {
      // A point that is never met lets the process come to its end, and so does none.
      const point = killedIn.length < KILLS ? somePoint(random) : undefined;
      const ended = await live([folder, `${seed}`, ...(point ? [JSON.stringify(point)] : [])]);
      if (point && ended.signal === 'SIGKILL') killedIn.push(COMMANDS[point.command]);
      else {
        if (ended.code !== 0) failures.push(`It ended with ${ended.code ?? ended.signal}: ${ended.errors}`);
        break;
      }
    }
    log = await readAndVerify(folder, failures);
    failures.push(...auditMoney(log), ...leftovers(log));
  }).catch((error: unknown) => failures.push(`It could not be carried out: ${String(error)}`));
  const count = (type: string) => log.filter((event) => event.type === type).length;
  const payouts = count('FundsCredited') + count('BountyAwarded');
  return { seed, killedIn, settled: count('MatchSettled'), payouts, failures };
}

const names = Object.keys(COMMANDS) as MoneyCommand[];
const somePoint = (random: Random): Point => ({
  command: names[between(random, 0, names.length - 1)] ?? 'HoldFunds',
  nth: between(random, 1, NTH_MAX),
  when: (['before', 'during', 'after'] as const)[between(random, 0, 2)] ?? 'before',
});

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly errors: string;
}

async function live(args: readonly string[]): Promise<Ended> {
  const child = spawn(execPath, [compiled(import.meta.url, './settler.js'), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-2_000);
  });
  // SIGTERM, so that one that hangs is not taken for one that was killed.
  const stuck = setTimeout(() => child.kill('SIGTERM'), STUCK_MS);
  const killWithUs = () => child.kill('SIGKILL');
  process.prependListener('exit', killWithUs);
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.once('close', (...ended) => resolve(ended));
  });
  clearTimeout(stuck);
  process.off('exit', killWithUs);
  return { code, signal, errors };
}

async function readAndVerify(folder: string, failures: string[]): Promise<readonly RecordedEvent[]> {
  const store = await LmdbEventStore.open(folderLayout(folder).log, { readOnly: true });
  try {
    const { verified, fault } = await verifyStore(store);
    if (!verified) failures.push(`The log does not hold: ${fault?.message}`);
    return (await readLog(store)).map(upcast);
  } finally {
    await store.close();
  }
}

/** When everything has come to its end, no hold is open, and every match has ended once. */
function leftovers(log: readonly RecordedEvent[]): string[] {
  const open = new Set<string>();
  const ends = new Map<string, number>();
  for (const { type, data } of log) {
    const { accountId, holdId, matchId } = data as { accountId: string; holdId: string; matchId: string };
    if (type === 'FundsHeld') open.add(`${accountId} ${holdId}`);
    if (type === 'HoldPosted' || type === 'HoldVoided') open.delete(`${accountId} ${holdId}`);
    if (type === 'MatchProposed') ends.set(matchId, 0);
    if (type === 'MatchSettled' || type === 'MatchVoided') ends.set(matchId, (ends.get(matchId) ?? 0) + 1);
  }
  const odd = [...ends].filter(([, count]) => count !== 1);
  return [
    ...[...open].map((hold) => `${hold} is still held`),
    ...odd.map(([matchId, count]) => `match ${matchId} ended ${count} times`),
  ];
}
