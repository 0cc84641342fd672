import { auditMoney } from '../../projections/balances/audit.js';
import { upcast } from '../../projections/views.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { type ArenaEvent, isAuthentic } from '../../services/arena/index.js';
import type { DomainEvent, EventStore, RecordedEvent } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { closing } from '../harness/folders.js';
import { streamsIn } from '../harness/write-side.js';
import { chainsHold, readLog } from './checks.js';

export interface Outcomes {
  readonly settled: number;
  readonly voided: number;
  /** Attempts that came to nothing. */
  readonly interrupted: number;
  readonly failures: readonly string[];
}

const ATTEMPTS_MAX = 3;

type DataOf<Type extends ArenaEvent['type']> = Extract<ArenaEvent, DomainEvent<Type>>['data'];

/** The whole log of an arena that has stopped, in current versions; says so where it does not verify. */
export async function verifiedLog(folder: string, failures: string[]): Promise<readonly RecordedEvent[]> {
  return verifiedLogOf(await LmdbEventStore.open(folderLayout(folder).log, { readOnly: true }), failures);
}

/** The same of any log, which is closed then. */
export async function verifiedLogOf(log: EventStore, failures: string[]): Promise<readonly RecordedEvent[]> {
  return closing(Promise.resolve(log), async (store) => {
    failures.push(...(await chainsHold({ store })));
    return (await readLog(store)).map(upcast);
  });
}

/** When everything has come to its end, no hold is open, and every match has ended once. */
export function leftovers(log: readonly RecordedEvent[]): string[] {
  const open = new Set<string>();
  const ends = new Map<string, number>();
  for (const { type, data } of log) {
    const { accountId, holdId, matchId } = data as { accountId: string; holdId: string; matchId: string };
    if (type === 'FundsHeld') open.add(`${accountId} ${holdId}`);
    if (/^Hold(Posted|Voided|Expired)$/.test(type)) open.delete(`${accountId} ${holdId}`);
    if (type === 'MatchProposed') ends.set(matchId, 0);
    if (type === 'MatchSettled' || type === 'MatchVoided') ends.set(matchId, (ends.get(matchId) ?? 0) + 1);
  }
  const odd = [...ends].filter(([, count]) => count !== 1);
  return [
    ...[...open].map((hold) => `${hold} is still held`),
    ...odd.map(([matchId, count]) => `match ${matchId} ended ${count} times`),
  ];
}

export const countIn = (log: readonly RecordedEvent[], ...types: string[]): number =>
  log.filter(({ type }) => types.includes(type)).length;

/** What is wrong with how the matches of an arena that has stopped ended, and with its money. */
export async function outcomesOf(folder: string, matches: number): Promise<Outcomes> {
  const failures: string[] = [];
  const log = await verifiedLog(folder, failures);
  const streams = streamsIn(log.filter(({ stream }) => stream.startsWith('match-')));
  if (streams.size !== matches) failures.push(`There are ${streams.size} matches instead of ${matches}.`);
  for (const [stream, events] of streams) {
    failures.push(...matchFaults(events as unknown as ArenaEvent[]).map((what) => `${stream}: ${what}`));
  }
  if (countIn(log, 'FundsHeld') === 0) failures.push('The ledger is empty.');
  return {
    settled: countIn(log, 'MatchSettled'),
    voided: countIn(log, 'MatchVoided'),
    interrupted: countIn(log, 'MatchRequeued', 'MatchVoided'),
    failures: [...failures, ...auditMoney(log)],
  };
}

function matchFaults(events: readonly ArenaEvent[]): string[] {
  const faults: string[] = [];
  const all = <Type extends ArenaEvent['type']>(type: Type) =>
    events.filter((event) => event.type === type).map(({ data }) => data as DataOf<Type>);
  const [settled, voided, played] = [all('MatchSettled'), all('MatchVoided'), all('MatchPlayed')];
  if (settled.length + voided.length !== 1) {
    faults.push(`it was settled ${settled.length} times and voided ${voided.length} times`);
  }
  if (played.length !== settled.length) faults.push(`it was played ${played.length} times`);
  if (voided.some(({ reason, detail }) => reason !== 'runner_failed' || detail === '')) {
    faults.push('it was voided without a good reason');
  }
  const attempts = all('MatchClaimed').map(({ attempt }) => attempt);
  if (attempts.length === 0 || Math.max(...attempts) > ATTEMPTS_MAX) faults.push(`its attempts were ${attempts}`);
  if (all('MatchRequeued').some(({ reason }) => reason === '')) faults.push('it was requeued without a reason');
  const [terms] = all('MatchProposed');
  for (const report of played) {
    const { signed } = report.execution;
    const turns = all('TurnPlayed');
    if (!terms || !signed || !isAuthentic(terms, { ...report, turns }, signed))
      faults.push('its signature does not hold');
  }
  return faults;
}
