import { Redis } from 'ioredis';
import { ledgerSums } from '../../projections/balances/query.js';
import { balances } from '../../projections/balances/table.js';
import { Projector } from '../../projections/engine/projector.js';
import type { View } from '../../projections/engine/view.js';
import { ratings } from '../../projections/leaderboards/table.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import type { PostgresSink } from '../../projections/sinks/postgres.js';
import { RedisBoards } from '../../projections/sinks/redis.js';
import { upcast, views } from '../../projections/views.js';
import type { EventStore, RecordedEvent } from '../../services/kernel/index.js';
import { chainsHold } from './checks.js';
import { leftovers } from './outcomes.js';
import { rebuiltFrom, rowFaults } from './rows.js';
import type { Receipt } from './season.js';

/** The log of a cluster and the rows that follow from it: what is new since the last look is added. */
export class ExpectedRows {
  readonly log: RecordedEvent[] = [];
  readonly rows = new MemorySink();
  private readonly projectors = views.map((view) => new Projector(view, this.rows, upcast));

  async readOn(store: Pick<EventStore, 'readAll'>): Promise<void> {
    for (;;) {
      const page = await store.readAll({ after: this.log.length });
      if (page.length === 0) return;
      this.log.push(...page);
      for (const projector of this.projectors) await projector.project(page);
    }
  }
}

interface Scene {
  readonly store: EventStore;
  readonly sink: PostgresSink;
  readonly redisUrl: string;
  readonly expected: ExpectedRows;
}

/** What is wrong with the log, the rows and the boards, when everything has come to its end. */
export async function faultsOf(scene: Scene, receipts: readonly Receipt[]): Promise<string[]> {
  const { store, sink, expected } = scene;
  await expected.readOn(store);
  const { log } = expected;
  const faults = [
    ...lost(log, receipts),
    ...(await chainsHold({ store })),
    ...leftovers(log),
    ...paidTwice(log),
    ...(await rowFaults(sink, expected.rows)),
    ...(await boardFaults(scene)),
  ];
  for (const [currency, sum] of Object.entries(ledgerSums(await sink.rows(balances)))) {
    if (sum !== 0n) faults.push(`Money sums to ${sum} ${currency}, not to zero.`);
  }
  if (faults.length > 0) for (const view of views) faults.push(...(await standingOf(view, sink, log)));
  return faults;
}

/** Rows that are late are those of a rebuild up to where they stand; rows that are wrong are those of none. */
async function standingOf(view: View, sink: PostgresSink, log: readonly RecordedEvent[]): Promise<string[]> {
  const { position = 0, generation } = (await sink.serving(view)) ?? {};
  const upTo = log.filter((event) => event.position <= position);
  const faults = await rowFaults(sink, await rebuiltFrom(upTo, [view]), [view]);
  const letters = (await sink.letters(view)).map((letter) => `${letter.position} ${letter.code}`);
  if (faults.length === 0 && position === log.length && letters.length === 0) return [];
  const how = faults.length === 0 ? 'those of the log up to there' : 'those of no place in the log';
  const aside = letters.length === 0 ? '' : `; put aside: ${letters.slice(0, 5).join(', ')}`;
  return [`${view.name} stands at ${position} of ${log.length} (${generation}), its rows are ${how}${aside}.`];
}

/** Every event of a receipt stands where it was said, in the stream of what it is about, by one command. */
function lost(log: readonly RecordedEvent[], receipts: readonly Receipt[]): string[] {
  return receipts
    .filter(({ id, position, events }) => {
      const there = log.slice(position - events.length, position);
      const [first] = there;
      const whole = there.every(
        ({ type, stream, revision, meta }, i) =>
          type === events[i] &&
          stream === first?.stream &&
          stream.slice(stream.indexOf('-') + 1) === id &&
          revision === first.revision + i &&
          meta.commandId === first.meta.commandId,
      );
      return there.length !== events.length || !whole;
    })
    .map(({ id, position }) => `Lost: what was acknowledged of ${id} at position ${position}.`);
}

/** What was held is posted or given back once, and every seat is paid once. */
function paidTwice(log: readonly RecordedEvent[]): string[] {
  const counts = new Map<string, number>();
  for (const event of log) {
    const { holdId, purpose } = event.data as { holdId?: string; purpose?: { matchId?: string; seat?: number } };
    const isEnd = /^Hold(Posted|Voided|Expired)$/.test(event.type);
    const isPaid = event.type === 'FundsCredited';
    const name = isEnd ? `hold ${holdId}` : `pay ${event.stream} ${purpose?.matchId} ${purpose?.seat}`;
    if (isEnd || isPaid) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].filter(([, n]) => n > 1).map(([name, n]) => `${name} happened ${n} times.`);
}

/** The boards in Redis have everybody where the log alone puts them, and nobody else. */
async function boardFaults({ redisUrl, expected }: Scene): Promise<string[]> {
  const redis = new Redis(redisUrl);
  try {
    const boards = new RedisBoards(redis);
    const faults: string[] = [];
    const counts = new Map<string, number>();
    const rows = await expected.rows.rows(ratings);
    for (const row of rows) {
      const { rating } = (await boards.rankOf(row, row.agentId)) ?? {};
      if (rating !== row.rating) faults.push(`The board has ${rating} for ${row.agentId}, not ${row.rating}.`);
      const name = `${row.season} ${row.game}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    for (const [name, count] of counts) {
      const [season = '', game = ''] = name.split(' ');
      const found = (await boards.top({ season, game }, rows.length + 1)).length;
      if (found !== count) faults.push(`The board of ${game} in ${season} has ${found} agents, not ${count}.`);
    }
    return faults;
  } finally {
    redis.disconnect();
  }
}
