import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommitReport, Projector } from '../../projections/engine/projector.js';
import { playedHistory } from '../../projections/history.contract.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { upcast } from '../../projections/views.js';
import { type OwnDatabase, ownDatabase } from '../engines/shared.contract.js';
import { DatabaseProxy } from './database-proxy.js';
import { rebuiltFrom, rowFaults } from './rows.js';

let database: OwnDatabase;
let proxy: DatabaseProxy;
beforeAll(async () => {
  database = await ownDatabase();
  proxy = await DatabaseProxy.listen(() => Number(new URL(database.url).port));
});
afterAll(async () => {
  await proxy.close();
  await database.drop();
});

describe('a commit whose answer is lost on the way', () => {
  it.each([
    ['has had its effect, and its events have it once', 'COMMIT', 1],
    ['or has had none, where the connection broke before', 'UPDATE checkpoints', 0],
  ])('%s', async (_what, at, effect) => {
    const url = new URL(database.url);
    url.port = `${proxy.port}`;
    const db = await openDatabase(url.href, { pool: 2 });
    try {
      const sink = new PostgresSink(db);
      const heard: CommitReport[] = [];
      const projector = new Projector(leaderboardsView, sink, upcast, (report) => heard.push(report));
      await projector.reset();
      const log = await playedHistory();
      const half = Math.floor(log.length / 2);
      await projector.follow(log.slice(0, half));
      heard.length = 0;
      const before = await projector.checkpoint();
      proxy.set({ after: leaderboardsView.name, at, cut: true }, () => {});
      await expect(projector.follow(log.slice(half))).rejects.toThrow(/Connection terminated/);
      await expect
        .poll(async () => (await sink.serving(leaderboardsView))?.position)
        .toBe(effect === 1 ? log.length : before);
      await projector.follow(log.slice(half));
      expect(await rowFaults(sink, await rebuiltFrom(log, [leaderboardsView]), [leaderboardsView])).toEqual([]);
      expect(heard.length).toBe(1 - effect);
    } finally {
      await db.destroy();
    }
  });
});
