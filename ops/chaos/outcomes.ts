import { balances } from '../../projections/balances/table.js';
import { balancesView } from '../../projections/balances/view.js';
import { Projector } from '../../projections/engine/projector.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { upcast } from '../../projections/views.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { type ArenaEvent, isAuthentic } from '../../services/arena/index.js';
import type { DomainEvent, RecordedEvent } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { verifyStore } from '../cli/verify.js';
import { readLog } from './checks.js';

export interface Outcomes {
  readonly settled: number;
  readonly voided: number;
  /** Attempts that came to nothing. */
  readonly requeued: number;
  readonly failures: readonly string[];
}

const ATTEMPTS_MAX = 3;

type DataOf<Type extends ArenaEvent['type']> = Extract<ArenaEvent, DomainEvent<Type>>['data'];

/** Reads the log of an arena that has stopped, and says what is wrong with how its matches ended. */
export async function outcomesOf(folder: string, matches: number): Promise<Outcomes> {
  const store = await LmdbEventStore.open(folderLayout(folder).log, { readOnly: true });
  try {
    const failures: string[] = [];
    const { verified, fault } = await verifyStore(store);
    if (!verified) failures.push(`The log does not hold: ${fault?.message}`);
    const log = (await readLog(store)).map(upcast);
    const streams = new Map<string, ArenaEvent[]>();
    for (const event of log) {
      if (!event.stream.startsWith('match-')) continue;
      streams.set(event.stream, [...(streams.get(event.stream) ?? []), event as unknown as ArenaEvent]);
    }
    if (streams.size !== matches) failures.push(`There are ${streams.size} matches instead of ${matches}.`);
    for (const [stream, events] of streams) failures.push(...matchFaults(events).map((what) => `${stream}: ${what}`));
    failures.push(...(await moneyFaults(log)));
    const count = (type: string) => log.filter((event) => event.type === type).length;
    return {
      settled: count('MatchSettled'),
      voided: count('MatchVoided'),
      requeued: count('MatchRequeued') + count('MatchVoided'),
      failures,
    };
  } finally {
    await store.close();
  }
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

/** The ledger sums to zero, nothing is left in escrow, and no stake is still held. */
async function moneyFaults(log: readonly RecordedEvent[]): Promise<string[]> {
  const sink = new MemorySink();
  await new Projector(balancesView, sink, upcast).project(
    log.filter((event) => balancesView.types.includes(event.type)),
  );
  const rows = await sink.rows(balances);
  const sum = rows.reduce((total, row) => total + row.balanceCents, 0n);
  const faults = sum === 0n ? [] : [`The ledger sums to ${sum}.`];
  if (rows.length === 0) faults.push('The ledger is empty.');
  const held = rows.filter(({ account, balanceCents }) => account.startsWith('escrow') && balanceCents !== 0n);
  return [...faults, ...held.map(({ account, balanceCents }) => `${account} still holds ${balanceCents}.`)];
}
