import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import type { RecordedEvent } from '../../services/kernel/index.js';
import { balances, postings } from '../balances/table.js';
import { playedHistory } from '../history.contract.js';
import { ratings } from '../leaderboards/table.js';
import { matches, turns } from '../matches/table.js';
import { MemorySink } from '../sinks/memory.js';
import { upcast, views } from '../views.js';
import { Projector, runProjections } from './projector.js';

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

describe('a projector', () => {
  it('gives the same rows however the events are cut into batches and repeated', async () => {
    const expected = await allRows(await projected([history]));
    const cut = fc.tuple(fc.nat(history.length), fc.nat(60), fc.nat(60));
    await fc.assert(
      fc.asyncProperty(fc.array(cut, { maxLength: 25 }), async (cuts) => {
        const edges = [...cuts].sort(([a], [b]) => a - b);
        const batches: (readonly RecordedEvent[])[] = [];
        let at = 0;
        for (const [edge, back, repeat] of edges) {
          batches.push(history.slice(Math.max(0, at - back), Math.max(at, edge)));
          at = Math.max(at, edge);
          batches.push(history.slice(Math.max(0, at - repeat), at));
        }
        batches.push(history.slice(at));
        expect(await allRows(await projected(batches))).toEqual(expected);
      }),
      { numRuns: 60, seed: 20260101 },
    );
  });

  it('goes on from its checkpoint', async () => {
    const sink = await projected([history.slice(0, 100)]);
    for (const view of views) await new Projector(view, sink, upcast).project(history);
    expect(await allRows(sink)).toEqual(await allRows(await projected([history])));
  });

  it('commits nothing of a batch that it cannot take in', async () => {
    const sink = await projected([history.slice(0, 50)]);
    const before = await allRows(sink);
    const future = { ...history.find((event) => event.type === 'MatchSettled')!, version: 99, position: 100_000 };
    const [view] = views.filter(({ name }) => name === 'leaderboards');
    await expect(new Projector(view!, sink, upcast).project([...history.slice(50), future])).rejects.toMatchObject({
      code: 'EVENT.FUTURE_VERSION',
    });
    expect(await allRows(sink)).toEqual(before);
  });

  it('follows the bus to the end of the log, also past events that do not concern it', async () => {
    const store = new MemoryEventStore();
    for (const { position: _position, ...event } of history)
      await store.append(event.stream, event.revision - 1, [event]);
    const sink = new MemorySink();
    const projectors = views.map((view) => new Projector(view, sink, upcast));
    const running = await runProjections((checkpoints) => new EmbeddedBus(store, checkpoints), projectors);
    await expect.poll(() => [...running.consumers.values()].every((c) => c.position() === history.length)).toBe(true);
    await running.stop();
    expect(await allRows(sink)).toEqual(await allRows(await projected([history])));
    expect(await sink.checkpoint(views[0]!)).toBe(history.length);
  });
});

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
    const games = (await sink.rows(ratings)).reduce((sum, row) => sum + row.games, 0);
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
