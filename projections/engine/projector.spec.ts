import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { AgonError, type Checkpoints, type RecordedEvent, type Upcaster } from '../../services/kernel/index.js';
import { balances, postings } from '../balances/table.js';
import { longHistory, playedHistory, renumbered } from '../history.contract.js';
import { ratings } from '../leaderboards/table.js';
import { matches, turns } from '../matches/table.js';
import { MemorySink } from '../sinks/memory.js';
import { upcast, views } from '../views.js';
import { Projections } from './projections.js';
import { Projector } from './projector.js';
import { rowRef } from './table.js';
import { defineView } from './view.js';

let history: readonly RecordedEvent[];
beforeAll(async () => {
  history = await playedHistory();
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

  override async commit(...args: Parameters<MemorySink['commit']>): Promise<void> {
    await this.ticks();
    if (this.failing) throw new AgonError('DATABASE.UNAVAILABLE', 'It restarts.');
    await super.commit(...args);
  }

  private async ticks(): Promise<void> {
    for (let left = this.next(6); left > 0; left--) await new Promise(setImmediate);
  }
}

describe('a projector', () => {
  it.each(views.map((view) => [view.name, view] as const))(
    'gives the same rows of %s however events are shuffled across streams, cut into batches and repeated',
    async (_name, view) => {
      const log = longHistory(history);
      const rowsOf = async (feed: (projector: Projector) => Promise<void>) => {
        const sink = new MemorySink();
        await feed(new Projector(view, sink, upcast));
        return Promise.all(view.tables.map(async (table) => [table.name, await sink.rows(table as typeof matches)]));
      };
      const expected = await rowsOf((projector) => projector.project(log));
      expect(expected.every(([, rows]) => (rows as object[]).length > 0)).toBe(true);
      await fc.assert(
        fc.asyncProperty(fc.infiniteStream(fc.nat()), async (numbers) => {
          const next = (below: number) => (numbers.next().value as number) % below;
          const arriving = interleaved(log, next);
          const rows = await rowsOf(async (projector) => {
            for (let at = 0; at < arriving.length; ) {
              const size = 1 + next(90);
              await projector.receive(arriving.slice(at, at + size));
              // What came before comes again, and some of what is still to come is missing for a while.
              await projector.receive(arriving.slice(Math.max(0, at - next(60)), at));
              at += size;
            }
          });
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
      const log = longHistory(history);
      const rowsOf = async (sink: MemorySink, feed: (projector: Projector) => Promise<void>) => {
        await feed(new Projector(view, sink, upcast));
        return Promise.all(view.tables.map(async (table) => [table.name, await sink.rows(table as typeof matches)]));
      };
      const expected = await rowsOf(new MemorySink(), (projector) => projector.project(log));
      await fc.assert(
        fc.asyncProperty(fc.infiniteStream(fc.nat()), async (numbers) => {
          const next = (below: number) => (numbers.next().value as number) % below;
          const batchEvents = 1 + next(60);
          const rows = await rowsOf(new SlowSink(next), async (projector) => {
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

  it('takes in nothing beyond a gap, unless it is told that the source has no more', async () => {
    const sink = new MemorySink();
    const view = views[0]!;
    const projector = new Projector(view, sink, upcast);
    const gap = history.filter(({ position }) => position !== 5);
    await projector.receive(gap.slice(0, 20));
    expect(await sink.checkpoint(view)).toBe(4);
    await projector.receive([], 15);
    expect(await sink.checkpoint(view)).toBe(15);
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
    expect(await sink.checkpoint(views[0]!)).toBe(history.length);
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
    expect(await sink.checkpoint(leaderboards)).toBe(log.length);
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

  it('is found among many when only the sink refuses it', async () => {
    const bad = renumbered(history).find((event) => event.type === 'MatchSettled')!.position;
    class Picky extends MemorySink {
      override async commit(...args: Parameters<MemorySink['commit']>): Promise<void> {
        const [, from, to, changes] = args;
        if (from < bad && bad <= to && changes.size > 0) throw new AgonError('SINK.REFUSED', 'Not this one.');
        return super.commit(...args);
      }
    }
    const sink = new Picky();
    await new Projector(leaderboards, sink, upcast).project(history);
    expect(await sink.letters(leaderboards)).toMatchObject([{ position: bad, code: 'SINK.REFUSED' }]);
    expect(await sink.rows(ratings)).toEqual((await rowsAfter(history.filter((e) => e.position !== bad))).rows);
  });
});

/** Streams keep their own order; which of them goes on is any. Nobody runs more than a hundred events ahead. */
function interleaved(log: readonly RecordedEvent[], next: (below: number) => number): RecordedEvent[] {
  const arrived: RecordedEvent[] = [];
  for (let at = 0; at < log.length; at += 100) {
    const streams = new Map<string, RecordedEvent[]>();
    for (const event of log.slice(at, at + 100))
      streams.set(event.stream, [...(streams.get(event.stream) ?? []), event]);
    const waiting = [...streams.values()];
    while (waiting.length > 0) {
      const i = next(waiting.length);
      arrived.push(waiting[i]!.shift()!);
      if (waiting[i]!.length === 0) waiting.splice(i, 1);
    }
  }
  return arrived;
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
    expect((await sink.rows(matches)).every(({ status }) => status === 'settled' || status === 'voided')).toBe(true);
    const escrow = (await sink.rows(balances)).find(({ account }) => account === 'escrow');
    expect(escrow?.balanceCents).toBe(0n);
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
