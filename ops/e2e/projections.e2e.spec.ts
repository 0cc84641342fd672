import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { execPath } from 'node:process';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { derivedId, GENESIS_HASH, seal } from '../../services/kernel/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { writeHistory } from '../bench/history.js';
import { startPostgres, urlOfRunning } from '../engines/postgres.js';
import { run, runWith, serve, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
const projections = async (...args: string[]) => {
  const { code, stdout, stderr } = await run('projections', ...args, '--data', folder.path, '--json');
  return { code, stderr, answer: stdout === '' ? undefined : JSON.parse(stdout) };
};

beforeAll(async () => {
  await run('demo', '--matches', '4', '--data', folder.path, '--json');
  // An event of a build to come.
  const store = await LmdbEventStore.open(join(folder.path, 'log'));
  const id = derivedId('e2e', 'future');
  const meta = { commandId: id, inputHash: GENESIS_HASH, correlationId: id, causationId: id };
  const event = seal({
    id,
    type: 'AgentCelebrated',
    version: 1,
    stream: 'agent-e2e',
    revision: 0,
    time: '2026-01-01T00:00:00.000Z',
    data: {},
    meta: { ...meta, actor: { id: 'e2e', role: 'operator' } },
    prevHash: GENESIS_HASH,
  });
  await store.append('agent-e2e', -1, [event]);
  await store.close();
}, 180_000);

afterAll(() => folder.remove());

/** Asks the read models of a folder that nobody runs on. */
async function inDatabase(dataDir: string, sql: string): Promise<void> {
  const server = await startPostgres({ folder: join(dataDir, 'postgres') });
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
  await server.stop();
}

describe('agon projections', () => {
  it('lists and rebuilds on a folder that nobody runs on', async () => {
    const before = await projections('list');
    expect(before.answer.map(({ view }: { view: string }) => view)).toContain('leaderboards');
    expect(before.answer.every(({ lagEvents }: { lagEvents: number }) => lagEvents === 1)).toBe(true);
    const rebuilt = await projections('rebuild', 'leaderboards');
    expect(rebuilt).toMatchObject({ code: 0, answer: { rebuilt: true, lagEvents: 0, deadLetters: 1, build: null } });
    expect(await projections('rebuild', 'nothing')).toMatchObject({ code: 2, answer: undefined });
  }, 120_000);

  it('works on the arena or the database that was named, and never on another one instead', async () => {
    const there = temporaryFolder();
    const server = await startPostgres({ folder: there.path });
    const named = async (env: Record<string, string>, ...args: string[]) => {
      const { code, stdout, stderr } = await runWith(env, ...args, '--data', folder.path, '--json');
      return { code, stderr, answer: stdout === '' ? undefined : JSON.parse(stdout) };
    };
    try {
      const env = { DATABASE_URL: server.url };
      const empty = await named(env, 'projections', 'list');
      expect(empty.answer.map(({ position }: { position: number }) => position)).toEqual(empty.answer.map(() => 0));
      expect(await named(env, 'ledger', 'check')).toMatchObject({ code: 1, answer: { position: 0, good: false } });
      expect(await named(env, 'projections', 'rebuild', 'balances')).toMatchObject({
        code: 0,
        answer: { lagEvents: 0 },
      });
      expect(await named(env, 'ledger', 'check')).toMatchObject({ code: 0, answer: { good: true } });
      const elsewhere = { AGON_URL: 'http://127.0.0.1:9' };
      for (const words of [['list'], ['dead-letters'], ['rebuild', 'balances'], ['replay', 'balances']]) {
        const { code, stderr, answer } = await named(elsewhere, 'projections', ...words);
        expect({ failed: code !== 0, answer, stderr }).toMatchObject({ failed: true, answer: undefined });
        expect(stderr).toContain('AUTH.NOT_SIGNED_IN');
      }
      expect((await named(elsewhere, 'ledger', 'check')).stderr).toContain('LEDGER.ELSEWHERE');
    } finally {
      await server.stop();
      there.remove();
    }
  }, 180_000);

  it('shows dead letters and replays them beside a running arena', async () => {
    const arena = await serve(folder.path, '--no-ladder', '--no-runner');
    try {
      const held = await arena.graphql<{ projections: { deadLetters: number }[] }>('{ projections { deadLetters } }');
      expect(held.data.projections.length).toBeGreaterThan(3);
      const all = async () => (await projections('dead-letters')).answer;
      await expect.poll(async () => (await all()).length, { timeout: 20_000 }).toBe(held.data.projections.length);
      expect((await projections('dead-letters', 'matches')).answer).toMatchObject([
        { group: 'projection.matches', type: 'AgentCelebrated', code: 'EVENT.UNKNOWN_TYPE' },
      ]);
      const replayed = await projections('replay', 'matches');
      // This build still does not know it.
      expect(replayed).toMatchObject({
        code: 1,
        answer: { replayed: 1, healed: 0, left: [{ code: 'EVENT.UNKNOWN_TYPE' }] },
      });
    } finally {
      await arena.stop();
    }
  }, 120_000);

  it('heals a view by a replay, once what it tripped over is mended', async () => {
    await inDatabase(folder.path, "ALTER TABLE accounts ADD CONSTRAINT broken CHECK (account_id <> 'gold') NOT VALID");
    const broken = await projections('rebuild', 'agents');
    expect(broken.answer).toMatchObject({ rebuilt: true, deadLetters: 2 });
    expect((await projections('dead-letters', 'agents')).answer).toMatchObject([
      { type: 'OwnerRegistered', code: 'SINK.REFUSED', message: expect.stringContaining('broken') },
      { type: 'AgentCelebrated' },
    ]);
    await inDatabase(folder.path, 'ALTER TABLE accounts DROP CONSTRAINT broken');
    expect((await projections('replay', 'agents')).answer).toMatchObject({ replayed: 2, healed: 1 });
    await inDatabase(folder.path, "SELECT 1 / count(*) FROM accounts WHERE account_id = 'gold'");
  }, 120_000);

  it('rebuilds beside what serves, and goes on where it was interrupted', async () => {
    const long = temporaryFolder();
    try {
      const store = await LmdbEventStore.open(join(long.path, 'log'));
      const count = await writeHistory(store, 80_000);
      await store.close();
      const args = ['--data', long.path, '--json'];
      expect((await run('projections', 'rebuild', 'leaderboards', ...args)).code).toBe(0);
      const child = spawn(execPath, [
        join(packageRoot, 'ops/cli/agon.js'),
        'projections',
        'rebuild',
        'leaderboards',
        ...args,
      ]);
      const ended = new Promise((resolve) => child.once('close', resolve));
      const seen = await untilItBuilds(join(long.path, 'postgres'));
      child.kill('SIGINT');
      expect(await ended).toBe(130);
      // A reader in the middle of it saw all of what served, and nothing of what was being built.
      expect(seen).toEqual({ games: (count / 26) * 4 });
      const [before] = JSON.parse((await run('projections', 'list', ...args)).stdout).filter(
        ({ view }: { view: string }) => view === 'leaderboards',
      );
      expect(before).toMatchObject({ position: count, build: { phase: 'building', total: count } });
      expect(before.build.position).toBeGreaterThan(0);
      expect(before.build.position).toBeLessThan(count);
      const resumed = await run('projections', 'rebuild', 'leaderboards', ...args);
      expect(JSON.parse(resumed.stdout)).toMatchObject({ rebuilt: true, position: count, build: null });
    } finally {
      long.remove();
    }
  }, 240_000);
});

/** Waits until a build has rows of its own, and says what a reader sees then. */
async function untilItBuilds(folder: string): Promise<object> {
  for (;;) {
    const client = new pg.Client({ connectionString: urlOfRunning(folder) });
    try {
      await client.connect();
      const { rows: built } = await client.query('SELECT 1 FROM build_leaderboards.checkpoints WHERE position > 0');
      const { rows } = await client.query('SELECT sum(games)::int AS games FROM ratings');
      if (built.length > 0) return rows[0];
    } catch {
      // Neither is there yet.
    } finally {
      await client.end().catch(() => {});
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
