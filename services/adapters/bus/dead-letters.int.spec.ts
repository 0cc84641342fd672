import { describe, expect, it } from 'vitest';
import { arena, ProposeMatch, VoidMatch } from '../../arena/index.js';
import { metaOf, OPERATOR } from '../../kernel/fixtures.js';
import { AgonError, type Command, type Context, createHandle, Folds } from '../../kernel/index.js';
import { runPolicy } from '../../runtime/policies.js';
import { GrantCredits, wallet } from '../../wallet/index.js';
import { MemoryEventStore } from '../store/memory.js';
import { until } from '../store/subscription.contract.js';
import { MemoryCheckpoints } from './checkpoints.js';
import { PolicyDeadLetters } from './dead-letters.js';
import { EmbeddedBus } from './embedded.js';

const matchId = '8f14e45f-ceea-467f-a8f3-0d1c3b2a1f00';

/** An arena of two contexts whose wallet cannot be reached for as long as `broken` says why. */
async function start() {
  const store = new MemoryEventStore();
  const checkpoints = new MemoryCheckpoints();
  const handle = createHandle({ store });
  const bus = new EmbeddedBus(store, checkpoints);
  const weather = { broken: '' };
  const contextOf = new Map([arena, wallet].flatMap((each) => each.commands.map(({ spec }) => [spec.type, each])));
  const execute = async (command: Command) => {
    if (weather.broken !== '' && command.type === 'HoldFunds') throw new AgonError('WALLET.BROKEN', weather.broken);
    return handle(contextOf.get(command.type) as Context, command);
  };
  const policies = [arena, wallet].flatMap((context) => context.policies ?? []);
  const consumers = await Promise.all(policies.map((policy) => runPolicy(bus, policy, execute)));
  const letters = new PolicyDeadLetters({ store, checkpoints, policies, execute });
  const settled = async () => {
    for (let last = -1; last !== (await store.lastPosition()); ) {
      last = await store.lastPosition();
      await until(() => consumers.every((consumer) => consumer.position() >= last));
    }
  };
  const types = async () => (await store.readStream(`match-${matchId}`)).map(({ type }) => type);
  const purseOf = async (accountId: string) => {
    const { purses, holds } = (await new Folds({ store }).load(wallet, accountId, 'tail')).state;
    return [purses.PLAY?.availableCents, holds.length];
  };
  for (const accountId of ['ada', 'bob']) {
    const grant = { accountId, amountCents: '500', currency: 'PLAY', reason: 'test' };
    await execute(new GrantCredits(grant, metaOf(`grant-${accountId}`)));
  }
  weather.broken = 'nobody is there';
  const seats = ['ada', 'bob'].map((accountId) => ({
    agentId: `${accountId}.bot`,
    accountId,
    version: 1,
    codeDigest: 'a'.repeat(64),
    runtime: 'javascript' as const,
  }));
  const terms = { matchId, game: 'tic-tac-toe', stakeCents: '200', currency: 'PLAY', seed: 's', seats, rakeBps: 1000 };
  await execute(new ProposeMatch(terms, metaOf('propose', OPERATOR)));
  await expect.poll(() => letters.list(), { timeout: 30_000 }).not.toEqual([]);
  const stop = async () => {
    await bus.close();
    await store.close();
  };
  return { store, execute, letters, weather, settled, types, purseOf, stop };
}

describe('what a policy gave up on', () => {
  it('is named, stays when it fails again, and is done when it is handed out again', async () => {
    const { letters, weather, settled, types, purseOf, stop } = await start();
    expect(await letters.list()).toMatchObject([{ group: 'policy.wallet.stakes', code: 'WALLET.BROKEN', attempts: 8 }]);
    weather.broken = 'still nobody';
    expect(await letters.replay({ group: 'policy.wallet.stakes' })).toMatchObject({
      done: [],
      left: [{ message: 'still nobody', attempts: 9 }],
    });
    expect(await types()).toEqual(['MatchProposed']);
    weather.broken = '';
    expect(await letters.replay({ eventId: 'another' })).toEqual({ done: [], left: [] });
    expect((await letters.replay()).done).toHaveLength(1);
    await settled();
    expect(await types()).toEqual(['MatchProposed', 'StakeEscrowed', 'StakeEscrowed', 'MatchReady']);
    expect(await letters.list()).toEqual([]);
    expect((await letters.replay()).done).toEqual([]);
    expect([await purseOf('ada'), await purseOf('bob')]).toEqual([
      [300n, 1],
      [300n, 1],
    ]);
    await stop();
  }, 60_000);

  it('holds nothing for a match that is over by then', async () => {
    const { execute, letters, weather, settled, types, purseOf, stop } = await start();
    weather.broken = '';
    await execute(new VoidMatch({ matchId, detail: 'by hand' }, metaOf('void', OPERATOR)));
    await settled();
    expect((await letters.replay()).done).toHaveLength(1);
    await settled();
    expect(await types()).toEqual(['MatchProposed', 'MatchVoided', 'EscrowDeclined', 'EscrowDeclined']);
    expect([await purseOf('ada'), await purseOf('bob')]).toEqual([
      [500n, 0],
      [500n, 0],
    ]);
    await stop();
  }, 60_000);
});
