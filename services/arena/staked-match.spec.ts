import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MemoryCheckpoints } from '../adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../adapters/bus/embedded.js';
import { MemoryEventStore } from '../adapters/store/memory.js';
import { until } from '../adapters/store/subscription.contract.js';
import { metaOf, OPERATOR } from '../kernel/fixtures.js';
import {
  chainFault,
  createHandle,
  EMPTY_HEAD,
  type Handle,
  NO_STREAM,
  type StreamHead,
  SYSTEM,
} from '../kernel/index.js';
import { GrantCredits, type WalletEvent, wallet } from '../wallet/index.js';
import { arena, ClaimMatch, FailAttempt, ProposeMatch, ReportMatch, VoidMatch } from './index.js';

const matchId = '8f14e45f-ceea-467f-a8f3-0d1c3b2a1f00';
const runner = { id: 'runner-1', role: 'runner' } as const;

/** Two contexts that know each other only by their events, with a real log and a real bus between them. */
describe('a staked match', () => {
  let store: MemoryEventStore;
  let bus: EmbeddedBus;
  let handle: Handle;
  let consumers: { position(): number }[];
  beforeEach(async () => {
    store = new MemoryEventStore();
    bus = new EmbeddedBus(store, new MemoryCheckpoints());
    handle = createHandle({ store });
    consumers = [];
    const contextOf = new Map(
      [arena, wallet].flatMap((context) => context.commands.map((c) => [c.spec.type, context])),
    );
    for (const policy of [arena, wallet].flatMap((context) => context.policies ?? [])) {
      const react = async (events: Parameters<Parameters<EmbeddedBus['consume']>[1]>[0]) => {
        for (const event of events) {
          // Twice, as if the bus had redelivered it: nothing may happen twice.
          for (const command of [...policy.react(event), ...policy.react(event)]) {
            const context = contextOf.get(command.type);
            if (context) await handle(context, command);
          }
        }
      };
      consumers.push(await bus.consume({ group: policy.name, types: policy.types }, react));
    }
  });
  afterEach(async () => {
    await bus.close();
    await store.close();
  });

  /** Waits until every policy has reacted to everything, and nothing more came of it. */
  const settledDown = async () => {
    for (let last = -1; last !== (await store.lastPosition()); ) {
      last = await store.lastPosition();
      const position = last;
      await until(() => consumers.every((consumer) => consumer.position() >= position));
    }
  };
  const grant = (accountId: string, amountCents: string) =>
    handle(
      wallet,
      new GrantCredits({ accountId, amountCents, currency: 'PLAY', reason: 'test' }, metaOf(`grant-${accountId}`)),
    );
  const propose = (stakeCents = '500') => {
    const seats = ['ada', 'bob'].map((accountId) => ({
      agentId: `${accountId}.bot`,
      accountId,
      version: 1,
      codeDigest: 'a'.repeat(64),
      runtime: 'javascript' as const,
    }));
    const terms = { matchId, game: 'tic-tac-toe', stakeCents, currency: 'PLAY', seed: 's', seats, rakeBps: 1000 };
    return handle(arena, new ProposeMatch(terms, metaOf('propose', OPERATOR)));
  };
  const claim = (id = 'claim') =>
    handle(arena, new ClaimMatch({ matchId, runnerId: 'runner-1', leaseMs: 60_000 }, metaOf(id, runner)));
  const report = (scores: number[], attempt = 1) => {
    const outcome = { winner: 0, scores, reason: 'line', detail: '', seatAtFault: null };
    const execution = { driver: 'wasm', gameVersion: 1, limits: {}, usage: [] };
    const data = { matchId, runnerId: 'runner-1', attempt, turns: [], outcome, execution };
    return handle(arena, new ReportMatch(data, metaOf(`report-${attempt}`, SYSTEM)));
  };
  const matchEvents = async () => (await store.readStream(`match-${matchId}`)).map((event) => event.type);
  const walletOf = async (accountId: string) => {
    const events = (await store.readStream(`wallet-${accountId}`)) as unknown as WalletEvent[];
    const holds = new Set<string>();
    let available = 0n;
    for (const { type, data } of events) {
      if (!('amountCents' in data)) continue;
      const cents = BigInt(data.amountCents);
      if (type === 'CreditsGranted' || type === 'FundsCredited') available += cents;
      if (type === 'FundsHeld') {
        available -= cents;
        holds.add(data.holdId);
      }
      if (type === 'HoldVoided') available += cents;
      if (type === 'HoldVoided' || type === 'HoldPosted') holds.delete(data.holdId);
    }
    return { available, openHolds: holds.size };
  };

  it('goes from proposal to payout by events alone', async () => {
    await grant('ada', '1000');
    await grant('bob', '700');
    await propose();
    await settledDown();
    expect(await matchEvents()).toEqual(['MatchProposed', 'StakeEscrowed', 'StakeEscrowed', 'MatchReady']);
    expect([await walletOf('ada'), await walletOf('bob')]).toEqual([
      { available: 500n, openHolds: 1 },
      { available: 200n, openHolds: 1 },
    ]);

    await claim();
    await report([1, 0]);
    await settledDown();
    expect((await matchEvents()).slice(4)).toEqual(['MatchClaimed', 'MatchPlayed', 'MatchSettled']);
    // Both put in 500; the house takes 100 of the 1000.
    expect([await walletOf('ada'), await walletOf('bob')]).toEqual([
      { available: 1_400n, openHolds: 0 },
      { available: 200n, openHolds: 0 },
    ]);
  });

  it('gives both stakes back on a draw', async () => {
    await grant('ada', '500');
    await grant('bob', '500');
    await propose();
    await settledDown();
    await claim();
    await report([0.5, 0.5]);
    await settledDown();
    const whole = { available: 500n, openHolds: 0 };
    expect([await walletOf('ada'), await walletOf('bob')]).toEqual([whole, whole]);
  });

  it.each([
    ['the second', '1000', '499'],
    ['the first', '499', '1000'],
  ])('is voided when %s stake is refused, and the other is released', async (_which, ada, bob) => {
    await grant('ada', ada);
    await grant('bob', bob);
    await propose();
    await settledDown();
    expect(await matchEvents()).toContain('MatchVoided');
    expect(await matchEvents()).not.toContain('MatchReady');
    expect([await walletOf('ada'), await walletOf('bob')]).toEqual([
      { available: BigInt(ada), openHolds: 0 },
      { available: BigInt(bob), openHolds: 0 },
    ]);
    await expect(claim()).rejects.toMatchObject({ code: 'ARENA.NOT_READY' });
  });

  it('is voided when both are refused, and nobody gains', async () => {
    await propose();
    await settledDown();
    expect(await matchEvents()).toEqual(['MatchProposed', 'MatchVoided']);
    const nothing = { available: 0n, openHolds: 0 };
    expect([await walletOf('ada'), await walletOf('bob')]).toEqual([nothing, nothing]);
  });

  it.each([
    ['an operator voids it', () => handle(arena, new VoidMatch({ matchId, detail: 'by hand' }, metaOf('void')))],
    [
      'no attempt succeeds',
      async () => {
        for (const attempt of [1, 2, 3]) {
          await claim(`claim-${attempt}`);
          const data = { matchId, runnerId: 'runner-1', attempt, reason: 'The cell died.' };
          await handle(arena, new FailAttempt(data, metaOf(`fail-${attempt}`, runner)));
        }
      },
    ],
  ])('releases both stakes when %s', async (_what, end) => {
    await grant('ada', '500');
    await grant('bob', '500');
    await propose();
    await settledDown();
    await end();
    await settledDown();
    expect((await matchEvents()).at(-1)).toBe('MatchVoided');
    const whole = { available: 500n, openHolds: 0 };
    expect([await walletOf('ada'), await walletOf('bob')]).toEqual([whole, whole]);
  });

  it('without a stake touches no wallet', async () => {
    await propose('0');
    await claim();
    await report([1, 0]);
    await settledDown();
    expect((await store.readAll()).every((event) => event.stream === `match-${matchId}`)).toBe(true);
  });

  it('leaves a log whose every stream is an unbroken chain', async () => {
    await grant('ada', '500');
    await grant('bob', '500');
    await propose();
    await settledDown();
    await claim();
    await report([1, 0]);
    await settledDown();
    const heads = new Map<string, StreamHead>();
    for (const event of await store.readAll()) {
      expect(chainFault(event, heads.get(event.stream) ?? EMPTY_HEAD)).toBeUndefined();
      heads.set(event.stream, event);
    }
    expect([...heads.keys()].sort()).toEqual([`match-${matchId}`, 'wallet-ada', 'wallet-bob']);
    expect(heads.get('wallet-ada')?.revision).toBeGreaterThan(NO_STREAM);
  });
});
