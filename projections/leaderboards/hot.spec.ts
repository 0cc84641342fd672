import { describe, expect, it } from 'vitest';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { Projector } from '../engine/projector.js';
import { rebuild } from '../engine/rebuild.js';
import { longHistory, playedHistory } from '../history.contract.js';
import { MemorySink } from '../sinks/memory.js';
import { upcast } from '../views.js';
import { hotBoardsContract } from './hot.contract.js';
import { HotFeed, MemoryBoards } from './hot.js';
import { rank } from './query.js';
import { ratings } from './table.js';
import { leaderboardsView } from './view.js';

hotBoardsContract('memory', async () => new MemoryBoards());

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
    expect(await boards.position()).toBe(await store.lastPosition());
  });
});
