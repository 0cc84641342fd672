import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { type Entry, Merger } from '../../services/adapters/bus/merge.js';
import type { Range, Watermark } from '../../services/adapters/bus/message.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { contexts } from '../../services/index.js';
import {
  AgonError,
  type Checkpoints,
  checkedData,
  type RecordedEvent,
  type Upcaster,
} from '../../services/kernel/index.js';
import { balances, postings } from '../balances/table.js';
import { playedHistory, renumbered, wholeHistory } from '../history.contract.js';
import { ratings } from '../leaderboards/table.js';
import { matches, turns } from '../matches/table.js';
import { leases, runners } from '../runners/table.js';
import { CutOffSink } from '../sinks/cut-off.contract.js';
import { MemorySink } from '../sinks/memory.js';
import { upcast, views } from '../views.js';
import { Projections, paced, secondsBehind } from './projections.js';
import { Projector } from './projector.js';
import { rowRef } from './table.js';
import { defineView, type View } from './view.js';

let history: readonly RecordedEvent[];
let whole: readonly RecordedEvent[];
beforeAll(async () => {
  history = await playedHistory();
  whole = await wholeHistory();
});

const allRows = async (sink: MemorySink) => {
  const tables = views.flatMap((view) => view.tables);
  return Promise.all(tables.map(async (table) => [table.name, await sink.rows(table as typeof matches)]));
};

const projected = async (batches: readonly (readonly RecordedEvent[])[]) => {
  const sink = new MemorySink();
  for (const view of views) {
    const projector = new Projector(view, sink, upcast);
    for (const batch of batches) await projector.project(batch);
  }
  return sink;
};

/** A sink that answers late, and some questions later than others. */
class SlowSink extends MemorySink {
  failing = false;

  constructor(private readonly next: (below: number) => number) {
    super();
  }

  override async load(...args: Parameters<MemorySink['load']>): ReturnType<MemorySink['load']> {
    const rows = await super.load(...args);
    await this.ticks();
    return rows;
  }

  override async commit(...args: Parameters<MemorySink['commit']>): ReturnType<MemorySink['commit']> {
    await this.ticks();
    if (this.failing) throw new AgonError('DATABASE.UNAVAILABLE', 'It restarts.');
    return super.commit(...args);
  }

  private async ticks(): Promise<void> {
    for (let left = this.next(6); left > 0; left--) await new Promise(setImmediate);
  }
}

const rowsOf = async (view: View, sink: MemorySink, feed: (projector: Projector) => Promise<void>) => {
  await feed(new Projector(view, sink, upcast));
  return Promise.all(view.tables.map(async (table) => [table.name, await sink.rows(table as typeof matches)]));
};

describe('the history that views are tried with', () => {
  it.each(views.flatMap((view) => view.types.map((type) => [view.name, type, view] as const)))(
    'has %s know of %s: without it, rows are other ones',
    async (_name, type, view) => {
      const [all, without] = [whole, whole.filter((event) => event.type !== type)].map((log) => {
        return rowsOf(view, new MemorySink(), (projector) => projector.project(log));
      });
      expect(await without).not.toEqual(await all);
    },
  );

  it('holds events as they are released, and nothing that a view cannot take in', async () => {
    const catalogues = new Map(
      contexts.flatMap(({ events }) => Object.keys(events.specs).map((type) => [type, events])),
    );
    for (const event of whole) expect(() => checkedData(catalogues.get(event.type)!, event)).not.toThrow();
    const sink = new MemorySink();
    for (const view of views) {
      await new Projector(view, sink, upcast).project(whole);
      expect(await sink.letters(view)).toEqual([]);
    }
  });
});

describe('a projector', () => {
  it.each(views.map((view) => [view.name, view] as const))(
    'gives the same rows of %s however events are shuffled across streams, cut into batches and repeated',
    async (_name, view) => {
      const expected = await rowsOf(view, new MemorySink(), (projector) => projector.project(whole));
      expect(expected.every(([, rows]) => (rows as object[]).length > 0)).toBe(true);
      await fc.assert(
        fc.asyncProperty(fc.infiniteStream(fc.nat()), async (numbers) => {
          const next = (below: number) => (numbers.next().value as number) % below;
          const published = publish(whole, next);
          const sink = new MemorySink();
          // Whoever takes the group over reads everything again, and goes on from the checkpoint.
          for (let members = 1 + next(3); members > 1; members--) {
            await followPartitions(new Projector(view, sink, upcast), published, next, next(whole.length));
          }
          const rows = await rowsOf(view, sink, (projector) => followPartitions(projector, published, next));
          expect(rows).toEqual(expected);
        }),
        { numRuns: 25, seed: 20260101 },
      );
    },
    120_000,
  );

  it.each(views.map((view) => [view.name, view] as const))(
    'gives the same rows of %s when it folds ahead of commits and loads that take their time',
    async (_name, view) => {
      const log = whole;
      const expected = await rowsOf(view, new MemorySink(), (projector) => projector.project(log));
      await fc.assert(
        fc.asyncProperty(fc.infiniteStream(fc.nat()), async (numbers) => {
          const next = (below: number) => (numbers.next().value as number) % below;
          const batchEvents = 1 + next(60);
          const rows = await rowsOf(view, new SlowSink(next), async (projector) => {
            for (let at = 0; at < log.length; ) {
              const size = 1 + next(40);
              await projector.ahead(log.slice(Math.max(0, at - next(10)), at + size), batchEvents);
              at += size;
            }
            await projector.flush();
            expect(await projector.checkpoint()).toBe(log.at(-1)?.position);
          });
          expect(rows).toEqual(expected);
        }),
        { numRuns: 25 },
      );
    },
    120_000,
  );

  it('takes nothing for committed that a failed commit has left behind', async () => {
    const [view] = views.filter(({ name }) => name === 'balances');
    const sink = new SlowSink(() => 2);
    const projector = new Projector(view!, sink, upcast);
    const [first, second, third] = [history.slice(0, 40), history.slice(40, 80), history.slice(80)];
    await projector.ahead(first, 1);
    await projector.flush();
    sink.failing = true;
    await projector.ahead(second, 1);
    await expect(projector.ahead(third, 1)).rejects.toMatchObject({ code: 'DATABASE.UNAVAILABLE' });
    sink.failing = false;
    expect(await projector.checkpoint()).toBe(first.at(-1)?.position);
    await projector.ahead(second, 1);
    await projector.ahead(third, 1);
    await projector.flush();
    expect(await sink.rows(balances)).toEqual(await (await projected([history])).rows(balances));
  });

  it('follows a log whose positions have gaps', async () => {
    const log = history.map((event) => ({ ...event, position: event.position * 1_000 + 7 }));
    const sink = new MemorySink();
    for (const view of views) {
      const projector = new Projector(view, sink, upcast);
      for (let at = 0; at < log.length; at += 30) await projector.follow(log.slice(at, at + 30));
      expect(await projector.checkpoint()).toBe(log.at(-1)?.position);
    }
    const expected = new MemorySink();
    for (const view of views) await new Projector(view, expected, upcast).project(log);
    expect(await allRows(sink)).toEqual(await allRows(expected));
  });

  it('sends the bus back when the rows went back, instead of going on without what they lost', async () => {
    const view = views.find(({ name }) => name === 'balances')!;
    const [first, second, third] = [history.slice(0, 40), history.slice(40, 80), history.slice(80)];
    const sink = new SlowSink(() => 2);
    const projector = new Projector(view, sink, upcast);
    await projector.follow(first);
    await projector.follow(second);
    // A database that comes back from a crash without its last commit.
    await sink.reset(view);
    await new Projector(view, sink, upcast).project(first);
    sink.failing = true;
    await expect(projector.follow(third)).rejects.toMatchObject({ code: 'DATABASE.UNAVAILABLE' });
    sink.failing = false;
    await expect(projector.follow(third)).rejects.toMatchObject({ code: 'CHECKPOINT.MOVED' });
    expect(await projector.checkpoint()).toBe(first.at(-1)?.position);
    await projector.follow([...second, ...third]);
    expect(await sink.rows(balances)).toEqual(await (await projected([history])).rows(balances));
  });

  it('sends the bus back also when the rows went back before its first batch', async () => {
    const view = views.find(({ name }) => name === 'balances')!;
    const [first, second, third] = [history.slice(0, 40), history.slice(40, 80), history.slice(80)];
    const sink = new MemorySink();
    await new Projector(view, sink, upcast).project([...first, ...second]);
    const projector = new Projector(view, sink, upcast);
    expect(await projector.begin()).toBe(second.at(-1)?.position);
    // Put back from a backup, while a build that was given up made the projector look again.
    await sink.reset(view);
    await new Projector(view, sink, upcast).project(first);
    await projector.exclusively(async () => {});
    await expect(projector.follow(third)).rejects.toMatchObject({ code: 'CHECKPOINT.MOVED' });
    expect(await projector.begin()).toBe(first.at(-1)?.position);
    await projector.follow([...second, ...third]);
    expect(await sink.rows(balances)).toEqual(await (await projected([history])).rows(balances));
  });

  it('tells of rows that moved and of which no report tells: those of a commit whose answer was lost', async () => {
    const view = views.find(({ name }) => name === 'balances')!;
    const [first, second, third] = [history.slice(0, 40), history.slice(40, 80), history.slice(80)];
    const sink = new CutOffSink();
    const reports: number[] = [];
    let moved = 0;
    const report = ({ to }: { to: number }) => reports.push(to);
    const projector = new Projector(view, sink, upcast, report, () => (moved += 1));
    await projector.follow(first);
    sink.answering = false;
    await expect(projector.follow(second)).rejects.toThrow('Connection terminated');
    sink.answering = true;
    expect(moved).toBe(0);
    await projector.follow(second);
    expect(moved).toBe(1);
    await projector.follow(third);
    await projector.reset();
    expect(await projector.checkpoint()).toBe(0);
    expect([moved, reports]).toEqual([1, [first.at(-1)?.position, third.at(-1)?.position]]);
  });

  it('goes on from its checkpoint', async () => {
    const sink = await projected([history.slice(0, 100)]);
    for (const view of views) await new Projector(view, sink, upcast).project(history);
    expect(await allRows(sink)).toEqual(await allRows(await projected([history])));
  });

  it('follows the bus to the end of the log, also past events that do not concern it', async () => {
    const store = new MemoryEventStore();
    for (const { position: _position, ...event } of history)
      await store.append(event.stream, event.revision - 1, [event]);
    const sink = new MemorySink();
    const makeBus = (checkpoints: Checkpoints) => new EmbeddedBus(store, checkpoints);
    const running = new Projections({ views, sink, store, upcast, makeBus });
    await running.start();
    await expect.poll(() => [...running.consumers.values()].every((c) => c.position() === history.length)).toBe(true);
    await running.stop();
    expect(await allRows(sink)).toEqual(await allRows(await projected([history])));
    expect((await sink.serving(views[0]!))?.position).toBe(history.length);
  });
});

describe('how far a view is', () => {
  it('is told by the age of the first event that it has not taken in, whatever positions count', async () => {
    const times = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:10:00.000Z'];
    const log = times.map((time, i) => ({ ...history[i]!, time, position: 4_000_000_000 * (i + 1) }));
    const readAll = async ({ after = 0 } = {}) => log.filter(({ position }) => position > after).slice(0, 1);
    const now = '2026-01-01T00:11:00.000Z';
    const ages = [0, 4_000_000_000, 8_000_000_000].map((position) => secondsBehind({ readAll }, position, now));
    expect(await Promise.all(ages)).toEqual([660, 60, 0]);
    expect(await secondsBehind({ readAll }, 0, times[0]!)).toBe(0);
  });

  it('and when a build will be done by the share of the log that it has come by', () => {
    const [from, total] = [1_000_000, 9_000_000];
    const startedMs = performance.now() - 10_000;
    // A quarter of what was left, in 10 seconds and 2,000 events: the rest takes three times as long.
    const build = { from, total, position: 3_000_000, events: 2_000, phase: 'building' as const };
    const { secondsLeft, eventsPerSecond } = paced({ progress: build, startedMs });
    expect(Math.abs(secondsLeft - 30)).toBeLessThan(5);
    expect(Math.abs(eventsPerSecond - 200)).toBeLessThan(20);
    expect(paced({ progress: { ...build, position: from, events: 0 }, startedMs }).secondsLeft).toBe(0);
  });
});

describe('an event that cannot be taken in', () => {
  const settledAt = (log: readonly RecordedEvent[], n: number) =>
    log.findIndex((event) => event.type === 'MatchSettled' && n-- === 0);
  const leaderboards = views.find(({ name }) => name === 'leaderboards')!;
  const rowsAfter = async (log: readonly RecordedEvent[], reader: Upcaster = upcast, view = leaderboards) => {
    const sink = new MemorySink();
    await new Projector(view, sink, reader).project(log);
    return { sink, rows: await sink.rows(ratings), letters: await sink.letters(view) };
  };

  it.each([
    ['of an unknown type', { type: 'MatchCelebrated', version: 1 }, 'EVENT.UNKNOWN_TYPE'],
    ['of a future version', { version: 99 }, 'EVENT.FUTURE_VERSION'],
    ['that the view trips over', { data: { game: 'a' } }, 'INTERNAL'],
  ])('%s is put aside with its error, and the view goes on', async (_what, change, code) => {
    const at = settledAt(history, 3);
    const log = history.map((event, i) => (i === at ? { ...event, ...change } : event));
    const { rows, letters, sink } = await rowsAfter(log);
    expect(letters).toMatchObject([{ code, position: at + 1, eventId: log[at]!.id, message: expect.any(String) }]);
    expect((await sink.serving(leaderboards))?.position).toBe(log.length);
    expect(rows).toEqual((await rowsAfter(history.filter((_event, i) => i !== at))).rows);
  });

  it('is at its place in the view once it can be read and the view is built anew', async () => {
    const at = settledAt(history, 2);
    const log = history.map((event, i) => (i === at ? { ...event, version: 99 } : event));
    const fixed = Object.assign(
      (event: RecordedEvent) => upcast(event.version === 99 ? { ...event, version: 1 } : event),
      {
        knows: upcast.knows,
      },
    );
    const { sink } = await rowsAfter(log);
    await new Projector(leaderboards, await sink.beside(leaderboards), fixed).project(log);
    await sink.swap(leaderboards);
    expect(await sink.rows(ratings)).toEqual((await rowsAfter(history)).rows);
    expect(await sink.letters(leaderboards)).toEqual([]);
  });

  it('leaves nothing behind of what it had changed before it failed', async () => {
    const view = defineView<{ type: 'OwnerRegistered'; data: { accountId: string } }>({
      name: 'halves',
      version: 1,
      tables: [balances],
      on: {
        OwnerRegistered: {
          reads: ({ data }) => [rowRef(balances, data.accountId, 'X')],
          apply: ({ data }, rows) => {
            rows.put(balances, { account: data.accountId, currency: 'X', balanceCents: 1n, postings: 1 });
            if (data.accountId === 'bob') throw new AgonError('TEST.HALF', 'Half way.');
          },
        },
      },
    });
    const { sink, letters } = await rowsAfter(history, upcast, view);
    expect((await sink.rows(balances)).map(({ account }) => account)).toEqual(['ada', 'cyd']);
    expect(letters.map(({ code }) => code)).toEqual(['TEST.HALF']);
  });

  /** Goes by what it has itself added, one row an owner, and notes how many there were. */
  const sweeping = (trip: { take?: string; end?: string; mixed?: string }) =>
    defineView<{ type: 'OwnerRegistered'; data: { accountId: string } }>({
      name: 'sweeping',
      version: 1,
      tables: [balances],
      on: {
        OwnerRegistered: {
          apply: ({ data: { accountId } }, rows) => {
            const line = (currency: string, count: number) => {
              return { account: accountId, currency, balanceCents: 0n, postings: count };
            };
            let seen = 0;
            if (trip.mixed === accountId) rows.put(balances, line('MIXED', 0));
            rows.sweep(balances, {
              match: { currency: 'OWN' },
              order: 'account',
              take: (some) => {
                if (trip.take === accountId) throw new AgonError('TEST.TAKE', 'On the way.');
                seen += some.length;
                return new Map([[balances, some.map((row) => ({ ...row, postings: row.postings + 1 }))]]);
              },
              end: (ended) => {
                ended.put(balances, line('OWN', 0));
                if (trip.end === accountId) throw new AgonError('TEST.END', 'At the end.');
                ended.put(balances, line('SEEN', seen));
              },
            });
          },
        },
      },
    });

  it.each([
    ['nowhere', {}, ['ada OWN 2', 'ada SEEN 0', 'bob OWN 1', 'bob SEEN 1', 'cyd OWN 0', 'cyd SEEN 2'], []],
    ['on the way', { take: 'bob' }, ['ada OWN 1', 'ada SEEN 0', 'cyd OWN 0', 'cyd SEEN 1'], ['TEST.TAKE']],
    ['at the end', { end: 'bob' }, ['ada OWN 1', 'ada SEEN 0', 'cyd OWN 0', 'cyd SEEN 1'], ['TEST.END']],
    ['beside', { mixed: 'bob' }, ['ada OWN 1', 'ada SEEN 0', 'cyd OWN 0', 'cyd SEEN 1'], ['PROJECTION.MIXED_SWEEP']],
  ])('sweeps over what was committed before it, alone, and leaves nothing behind if it trips: %s', async (...args) => {
    const [, trip, lines, codes] = args;
    const view = sweeping(trip);
    const feeds: ((projector: Projector) => Promise<unknown>)[] = [
      (projector) => projector.project(history),
      async (projector) => {
        for (let at = 0; at < history.length; at += 7) await projector.ahead(history.slice(at, at + 7), 1_000);
        await projector.flush();
      },
    ];
    for (const feed of feeds) {
      const sink = new MemorySink();
      await feed(new Projector(view, sink, upcast));
      const rows = await sink.rows(balances);
      expect(rows.map(({ account, currency, postings }) => `${account} ${currency} ${postings}`)).toEqual(lines);
      expect((await sink.letters(view)).map(({ code }) => code)).toEqual(codes);
      expect((await sink.serving(view))?.position).toBe(history.length);
    }
  });

  it('is found among many when only the sink refuses it', async () => {
    const bad = renumbered(history).find((event) => event.type === 'MatchSettled')!.position;
    class Picky extends MemorySink {
      override async commit(...args: Parameters<MemorySink['commit']>): ReturnType<MemorySink['commit']> {
        const [, from, to, { changes }] = args;
        if ((from?.position ?? 0) < bad && bad <= to && changes && changes.size > 0)
          throw new AgonError('SINK.REFUSED', 'Not this one.');
        return super.commit(...args);
      }
    }
    const sink = new Picky();
    await new Projector(leaderboards, sink, upcast).project(history);
    expect(await sink.letters(leaderboards)).toMatchObject([{ position: bad, code: 'SINK.REFUSED' }]);
    expect(await sink.rows(ratings)).toEqual((await rowsAfter(history.filter((e) => e.position !== bad))).rows);
  });
});

interface Published {
  readonly lanes: readonly (readonly Entry<RecordedEvent>[])[];
  readonly watermarks: readonly Watermark[];
}

const LANES = 4;

/** The log as a relay publishes it: transactions of some events, each stream on the lane that it has. */
function publish(log: readonly RecordedEvent[], next: (below: number) => number): Published {
  const lanes: Entry<RecordedEvent>[][] = Array.from({ length: LANES }, () => []);
  const laneOf = new Map<string, number>();
  const watermarks: Watermark[] = [];
  for (let at = 0; at < log.length; ) {
    const transaction = log.slice(at, at + 1 + next(40));
    const before = lanes.map(({ length }) => length);
    for (const event of transaction) {
      if (!laneOf.has(event.stream)) laneOf.set(event.stream, next(LANES));
      const lane = lanes[laneOf.get(event.stream)!]!;
      lane.push({ offset: lane.length, position: event.position, what: event });
    }
    const ranges = lanes.map(({ length }, i): Range => [`t${i}`, 0, before[i]!, length - before[i]!]);
    const [after, position] = [log[at - 1]?.position ?? 0, transaction.at(-1)!.position];
    watermarks.push({ after, position, ranges: ranges.filter(([, , , count]) => count > 0) });
    at += transaction.length;
  }
  return { lanes, watermarks };
}

/** Reads the lanes in whatever order and some of it twice, as a member of a group does, until enough was delivered. */
async function followPartitions(
  projector: Projector,
  { lanes, watermarks }: Published,
  next: (below: number) => number,
  enough = Number.POSITIVE_INFINITY,
): Promise<void> {
  const merger = new Merger<RecordedEvent>('marks', await projector.checkpoint());
  const sources = [...lanes.map(({ length }) => ({ length, at: 0 })), { length: watermarks.length, at: 0 }];
  for (let delivered = 0; delivered < enough; ) {
    const open = sources.filter(({ at, length }) => at < length);
    const source = open[next(open.length || 1)];
    if (source) {
      const [from, to] = [Math.max(0, source.at - next(8)), source.at + 1 + next(30)];
      const i = sources.indexOf(source);
      if (lanes[i]) merger.add(`t${i}`, 0, lanes[i].slice(from, to));
      else watermarks.slice(from, to).forEach((mark, n) => void merger.addWatermark(from + n, mark));
      source.at = to;
    }
    const batch = merger.next(1 + next(90), open.length === 0 || next(2) === 0);
    if (!batch && open.length === 0) return;
    if (!batch) continue;
    const events = batch.items.map(({ what }) => what);
    // An answer that is lost makes the bus deliver the same events again.
    for (let times = 1 + next(2); times > 0; times--) await projector.follow(events);
    merger.done(batch.to);
    delivered += events.length;
  }
}

describe('the views', () => {
  it('keep the ledger at zero at every position', async () => {
    const rows = await (await projected([history])).rows(postings);
    const sums = new Map<bigint, bigint>();
    for (const { position, amountCents } of rows) sums.set(position, (sums.get(position) ?? 0n) + amountCents);
    expect([...sums.values()].every((sum) => sum === 0n)).toBe(true);
  });

  it('leave nothing in escrow once every match is over', async () => {
    const sink = await projected([history]);
    const open = (await sink.rows(matches)).filter(({ status }) => status !== 'settled' && status !== 'voided');
    expect(open).toMatchObject([{ status: 'playing', stakeCents: 0n }]);
    const escrow = (await sink.rows(balances)).find(({ account }) => account === 'escrow');
    expect(escrow?.balanceCents).toBe(0n);
  });

  it('know who plays, and only what is in hand now', async () => {
    const sink = await projected([history]);
    const [inHand] = (await sink.rows(matches)).filter(({ status }) => status === 'playing');
    const [runner, ...others] = await sink.rows(runners);
    expect(others).toEqual([]);
    const count = (type: string) => history.filter((event) => event.type === type).length;
    expect(runner).toMatchObject({
      claimed: count('MatchClaimed'),
      played: count('MatchPlayed'),
      status: 'registered',
    });
    expect(runner?.claimed).toBeGreaterThan(Number(runner?.played) + 1);
    const requeued = history.findIndex(({ type }) => type === 'MatchRequeued');
    expect(requeued).toBeGreaterThan(0);
    expect(await (await projected([history.slice(0, requeued)])).rows(leases)).toHaveLength(1);
    expect(await (await projected([history.slice(0, requeued + 1)])).rows(leases)).toEqual([]);
    expect(await sink.rows(leases)).toMatchObject([
      { matchId: inHand?.matchId, runnerId: runner?.runnerId, attempt: 1 },
    ]);
  });

  it('show balances as the sum of their postings', async () => {
    const sink = await projected([history]);
    const lines = await sink.rows(postings);
    for (const { account, currency, balanceCents } of await sink.rows(balances)) {
      const own = lines.filter((line) => line.account === account && line.currency === currency);
      expect(
        own.reduce((sum, line) => sum + line.amountCents, 0n),
        account,
      ).toBe(balanceCents);
    }
  });

  it('know voided matches with their reason, and count no rating for them', async () => {
    const sink = await projected([history]);
    const all = await sink.rows(matches);
    const voided = all.filter(({ status }) => status === 'voided');
    expect(voided.length).toBeGreaterThan(0);
    expect(voided.every(({ reason }) => reason === 'stake_refused')).toBe(true);
    const games = (await sink.rows(ratings))
      .filter(({ season }) => season === 'all')
      .reduce((sum, row) => sum + row.games, 0);
    expect(games).toBe(2 * all.filter(({ status }) => status === 'settled').length);
  });

  it('keep the turns of a match that was played again', async () => {
    const sink = await projected([history]);
    const again = (await sink.rows(matches)).filter(({ attempts, status }) => attempts === 2 && status === 'settled');
    expect(again.length).toBeGreaterThan(0);
    const its = (await sink.rows(turns)).filter(({ matchId }) => matchId === again[0]!.matchId);
    expect(its.map(({ turn }) => turn)).toEqual([1, 2, 3]);
  });
});
