import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { derivedId, GENESIS_HASH, seal } from '../../services/kernel/index.js';
import { run, serve, temporaryFolder } from './agon.contract.js';

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
    ...{ id, type: 'AgentCelebrated', version: 1, stream: 'agent-e2e', revision: 0, time: '2026-01-01T00:00:00.000Z' },
    ...{ data: {}, meta: { ...meta, actor: { id: 'e2e', role: 'operator' } }, prevHash: GENESIS_HASH },
  });
  await store.append('agent-e2e', -1, [event]);
  await store.close();
}, 180_000);

afterAll(() => folder.remove());

describe('agon projections', () => {
  it('lists and rebuilds on a folder that nobody runs on', async () => {
    const before = await projections('list');
    expect(before.answer.map(({ view }: { view: string }) => view)).toContain('leaderboards');
    expect(before.answer.every(({ lagEvents }: { lagEvents: number }) => lagEvents === 1)).toBe(true);
    const rebuilt = await projections('rebuild', 'leaderboards');
    expect(rebuilt).toMatchObject({ code: 0, answer: { rebuilt: true, lagEvents: 0, deadLetters: 1, build: null } });
    expect(await projections('rebuild', 'nothing')).toMatchObject({ code: 2, answer: undefined });
  }, 120_000);

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
});
