import { describe, expect, it } from 'vitest';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import type { RecordedEvent } from '../../services/kernel/index.js';
import { Projector } from '../engine/projector.js';
import { rebuild } from '../engine/rebuild.js';
import { longHistory, playedHistory } from '../history.contract.js';
import { CutOffSink } from '../sinks/cut-off.contract.js';
import { MemorySink } from '../sinks/memory.js';
import { upcast } from '../views.js';
import { hotBoardsContract } from './hot.contract.js';
import { type HotBoards, HotFeed, MemoryBoards } from './hot.js';
import { rank } from './query.js';
import { ratings } from './table.js';
import { leaderboardsView } from './view.js';

hotBoardsContract('memory', async () => new MemoryBoards());

it('boards in memory do not grow by what they are asked for', async () => {
  const boards = new MemoryBoards();
  await boards.fill({ position: 0, generation: 'one' }, [{ season: 'all', game: 'a', agentId: 'x', rating: 1 }]);
  for (let i = 0; i < 100; i++) {
    const board = { season: `${i}`, game: 'a' };
    expect(await boards.top(board, 10)).toEqual([]);
    expect(await boards.around(board, 'x', 1)).toEqual([]);
    await boards.apply({ position: i + 1, generation: 'one' }, { put: [], removed: [{ ...board, agentId: 'x' }] }, 0);
  }
  expect([...(boards as unknown as { boards: Map<string, unknown> }).boards.keys()]).toEqual(['all\u0000a']);
});

describe('the feed of hot boards', () => {
  it('keeps them where the rows are, through commits, reversals, repeats and a swap', async () => {
    const log = longHistory(await playedHistory());
    const [sink, boards] = [new MemorySink(), new MemoryBoards()];
    const feed = new HotFeed(boards, leaderboardsView, sink);
    await feed.start();
    const projector = new Projector(leaderboardsView, sink, upcast, feed.committed);
    const agree = async () => {
      await feed.settled();
      const rows = (await sink.rows(ratings)).filter(({ season, game }) => season === 'all' && game === 'a');
      const expected = rank(rows, '2026-01-01T00:00:00.000Z').map((row) => [row.agentId, row.rating, row.rank]);
      const top = await boards.top({ season: 'all', game: 'a' }, 100);
      expect(top.map((row) => [row.agentId, row.rating, row.rank])).toEqual(expected);
      expect(top.length).toBeGreaterThan(1);
    };
    for (let at = 0; at < log.length; at += 60) await projector.project(log.slice(Math.max(0, at - 20), at + 60));
    await agree();

    // The log that a rebuild reads was shorter: what was swapped in is other rows.
    const store = new MemoryEventStore();
    for (const { position: _position, ...event } of await playedHistory(12)) {
      await store.append(event.stream, event.revision - 1, [event]);
    }
    const other = new MemorySink();
    const otherFeed = new HotFeed(boards, leaderboardsView, other);
    await rebuild({ view: leaderboardsView, sink: other, store, upcast });
    otherFeed.swapped(leaderboardsView);
    await otherFeed.settled();
    expect((await boards.mark())?.position).toBe(await store.lastPosition());
  });

  it('fills them again when another process has put other rows in their place, at the same position', async () => {
    const store = new MemoryEventStore();
    for (const { position: _position, ...event } of await playedHistory()) {
      await store.append(event.stream, event.revision - 1, [event]);
    }
    const [sink, boards] = [new MemorySink(), new MemoryBoards()];
    const feed = new HotFeed(boards, leaderboardsView, sink);
    const projector = new Projector(leaderboardsView, sink, upcast, feed.committed);
    await projector.project(await store.readAll({}));
    await feed.settled();
    const before = await boards.mark();
    const swapByAnother = async () => {
      await rebuild({ view: leaderboardsView, sink, store, upcast });
      const { position, generation } = (await sink.serving(leaderboardsView))!;
      expect(position).toBe(before?.position);
      return { position, generation };
    };
    const second = await swapByAnother();
    feed.compare();
    await feed.settled();
    expect(await boards.mark()).toEqual(second);

    const third = await swapByAnother();
    feed.refresh();
    await feed.settled();
    expect(await boards.mark()).toEqual(third);
    expect(new Set([before, second, third].map((mark) => mark?.generation)).size).toBe(3);
  });

  it('fills them again when they have missed a commit, or have lost everything', async () => {
    const log = longHistory(await playedHistory());
    const sink = new MemorySink();
    let boards = new MemoryBoards();
    let away = false;
    const place: HotBoards = {
      mark: () => boards.mark(),
      apply: async (...change) => {
        if (away) throw new Error('Redis does not answer');
        return boards.apply(...change);
      },
      fill: (...rows) => boards.fill(...rows),
      top: (...asked) => boards.top(...asked),
      rankOf: (...asked) => boards.rankOf(...asked),
      around: (...asked) => boards.around(...asked),
    };
    const feed = new HotFeed(place, leaderboardsView, sink);
    const projector = new Projector(leaderboardsView, sink, upcast, feed.committed);
    const agree = async () => {
      await feed.settled();
      for (const row of await sink.rows(ratings)) {
        expect(await boards.rankOf(row, row.agentId), row.agentId).toMatchObject({ rating: row.rating });
      }
    };
    const third = Math.floor(log.length / 3);
    await projector.project(log.slice(0, third));
    away = true;
    await projector.project(log.slice(third, third + 60));
    await feed.settled();
    away = false;
    await projector.project(log.slice(third + 60, 2 * third));
    await agree();

    boards = new MemoryBoards();
    await projector.project(log.slice(2 * third));
    await agree();

    boards = new MemoryBoards();
    feed.refresh();
    await agree();
  });

  it('finds a change that never came to it, also when the log goes no further', async () => {
    const log = longHistory(await playedHistory());
    const [sink, boards] = [new CutOffSink(), new MemoryBoards()];
    let told: number | undefined;
    const onMoved = () => {
      void boards.mark().then((mark) => {
        told = mark?.position;
      });
    };
    const feed = new HotFeed(boards, leaderboardsView, sink, undefined, onMoved);
    await feed.start();
    const projector = new Projector(leaderboardsView, sink, upcast, feed.committed);
    const look = async () => {
      feed.compare();
      await feed.settled();
    };
    const half = Math.floor(log.length / 2);
    await projector.follow(log.slice(0, half));
    await look();
    // The bus brings them again until they are in the rows, and not one commit is heard of.
    sink.answering = false;
    while ((await projector.checkpoint()) < (log.at(-1)?.position ?? 0)) {
      await expect(projector.follow(log.slice(half))).rejects.toThrow('Connection terminated');
    }
    await look();
    await look();
    const rows = await sink.rows(ratings);
    expect(rows).toEqual(await rebuiltRows(log));
    for (const row of rows) expect(await boards.rankOf(row, row.agentId)).toMatchObject({ rating: row.rating });
    expect(await boards.mark()).toMatchObject({ position: log.at(-1)?.position });
    // Whoever keeps answers that were made of boards hears of it when they have moved, and not before.
    expect(told).toBe(log.at(-1)?.position);
  });

  it('lets a change be under way, and fills nothing for it', async () => {
    const log = longHistory(await playedHistory());
    let fills = 0;
    class CountedBoards extends MemoryBoards {
      override async fill(...rows: Parameters<MemoryBoards['fill']>): Promise<void> {
        fills += 1;
        return super.fill(...rows);
      }
    }
    const sink = new MemorySink();
    const feed = new HotFeed(new CountedBoards(), leaderboardsView, sink);
    await feed.start();
    const reports: Parameters<HotFeed['committed']>[0][] = [];
    const projector = new Projector(leaderboardsView, sink, upcast, (report) => reports.push(report));
    for (let at = 0; at < log.length; at += 100) {
      await projector.follow(log.slice(at, at + 100));
      feed.compare();
      await feed.settled();
      // The first commit made the rows, and with them their generation.
      if (at === 0) fills = 0;
      for (const report of reports.splice(0)) feed.committed(report);
    }
    await feed.settled();
    expect(fills).toBe(0);
  });
});

async function rebuiltRows(log: readonly RecordedEvent[]) {
  const sink = new MemorySink();
  await new Projector(leaderboardsView, sink, upcast).project(log);
  return sink.rows(ratings);
}
