import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ArenaPort, type MatchRecord, signedReport, type WorkOrder } from '../../sandbox-runner/index.js';
import { isAuthentic } from '../../services/arena/index.js';
import { newMeta, newSigningKey, runnerIdOf, type SigningKey, SYSTEM } from '../../services/kernel/index.js';
import { RevokeRunner } from '../../services/runners/index.js';
import { LEASE_MS, openScene, type Scene, SOURCES } from './scene.contract.js';

export interface Connected {
  readonly port: ArenaPort;
  close(): Promise<void>;
}

export const recordOf = (order: WorkOrder, winner: 0 | 1 = 0): MatchRecord =>
  ({
    game: order.game,
    gameVersion: 1,
    seed: order.seed,
    driver: 'wasm',
    agents: order.codeDigests,
    turns: [{ turn: 1, seat: 0, action: 4, fuel: 7 }],
    outcome: { winner, scores: [1 - winner, winner], reason: 'line', detail: '', seatAtFault: null },
    usage: [
      { fuel: 7, peakMemoryBytes: 1 },
      { fuel: 0, peakMemoryBytes: 1 },
    ],
    limits: { turnFuel: 250 },
  }) as unknown as MatchRecord;

/** What every way to the write side keeps, wherever the runner is. */
export function arenaPortContract(name: string, connect: (scene: Scene, key: SigningKey) => Promise<Connected>) {
  describe(`the write side, ${name}`, () => {
    let scene: Scene;
    let opened: Connected[];
    const key = newSigningKey();
    const other = newSigningKey();
    beforeEach(async () => {
      scene = await openScene();
      opened = [];
    });
    afterEach(async () => {
      for (const each of opened) await each.close();
      await scene.close();
    });

    const as = async (who: SigningKey): Promise<ArenaPort> => {
      const connected = await connect(scene, who);
      opened.push(connected);
      return connected.port;
    };
    const claimed = async (port: ArenaPort, matchId: string): Promise<WorkOrder> => {
      const order = await port.claim(matchId);
      expect(order).toBeDefined();
      return order as WorkOrder;
    };
    const ofType = async (matchId: string, type: string) =>
      (await scene.eventsOf(matchId)).filter((event) => event.type === type).map((event) => event.data);
    const refused = (code: string) => expect.objectContaining({ code });

    it('offers a match, leases it, and makes events of a signed report', async () => {
      const port = await as(key);
      const waiting = port.next(3, AbortSignal.timeout(10_000));
      const matchId = await scene.propose();
      expect(await waiting).toEqual([matchId]);
      const order = await claimed(port, matchId);
      const { codeDigests } = scene;
      const runtimes = ['javascript', 'javascript'];
      expect(order).toEqual({
        matchId,
        attempt: 1,
        game: 'tic-tac-toe',
        seed: 's',
        codeDigests,
        runtimes,
        agentIds: ['owner-0.bot', 'owner-1.bot'],
        leaseMs: LEASE_MS,
      });
      await port.report(signedReport(key, order, recordOf(order)));
      expect(await scene.typesOf(matchId)).toEqual([
        'MatchProposed',
        'MatchReady',
        'MatchClaimed',
        'TurnPlayed',
        'MatchPlayed',
        'MatchSettled',
      ]);
      const events = await scene.eventsOf(matchId);
      const terms = events.find((event) => event.type === 'MatchProposed')!.data;
      const turns = events.filter((event) => event.type === 'TurnPlayed').map((event) => event.data);
      const played = events.find((event) => event.type === 'MatchPlayed')!.data;
      const { signed } = played.execution;
      expect(signed?.publicKey).toBe(key.publicKey);
      expect(isAuthentic(terms, { ...played, turns }, signed!)).toBe(true);
    });

    it('has nothing for a runner that stops waiting', async () => {
      const port = await as(key);
      const stopping = new AbortController();
      const waiting = port.next(1, stopping.signal).catch(() => []);
      stopping.abort();
      expect(await waiting).toEqual([]);
    });

    it('gives one attempt to one of two runners', async () => {
      const [one, two] = [await as(key), await as(other)];
      for (let i = 0; i < 5; i++) {
        const matchId = await scene.propose();
        const orders = await Promise.all([one.claim(matchId), two.claim(matchId)]);
        expect(orders.filter((order) => order !== undefined)).toHaveLength(1);
        expect(await ofType(matchId, 'MatchClaimed')).toHaveLength(1);
      }
    });

    it.each<[string, (order: WorkOrder) => { text: string; signature: string }, string]>([
      ['signed by another key', (order) => signedReport(other, order, recordOf(order)), 'ARENA.BAD_SIGNATURE'],
      [
        'changed after it was signed',
        (order) => ({
          ...signedReport(key, order, recordOf(order)),
          text: signedReport(key, order, recordOf(order, 1)).text,
        }),
        'ARENA.BAD_SIGNATURE',
      ],
      [
        'of another seed',
        (order) => signedReport(key, { ...order, seed: 'mine' }, recordOf(order)),
        'ARENA.BAD_SIGNATURE',
      ],
      [
        'with more in it than is recorded',
        (order) => {
          const text = signedReport(key, order, recordOf(order)).text.replace('{', '{"a":1,');
          return { text, signature: key.sign(text) };
        },
        'ARENA.BAD_SIGNATURE',
      ],
      ['that is no JSON', () => ({ text: 'won', signature: key.sign('won') }), 'ARENA.BAD_REPORT'],
      [
        'of another attempt',
        (order) => signedReport(key, { ...order, attempt: 2 }, recordOf(order)),
        'ARENA.LEASE_LOST',
      ],
    ])('refuses a report %s', async (_what, make, code) => {
      const port = await as(key);
      const matchId = await scene.propose();
      const order = await claimed(port, matchId);
      await expect(port.report(make(order))).rejects.toEqual(refused(code));
      expect((await scene.typesOf(matchId)).at(-1)).toBe('MatchClaimed');
    });

    it('takes a replayed report once, and no second outcome', async () => {
      const port = await as(key);
      const matchId = await scene.propose();
      const order = await claimed(port, matchId);
      const report = signedReport(key, order, recordOf(order));
      await port.report(report);
      const before = await scene.typesOf(matchId);
      await port.report(report);
      const otherOutcome = signedReport(key, order, recordOf(order, 1));
      await expect(port.report(otherOutcome)).rejects.toEqual(refused('COMMAND.KEY_REUSED'));
      const thief = await as(other);
      await expect(thief.report(report)).rejects.toEqual(refused('ARENA.BAD_SIGNATURE'));
      expect(await scene.typesOf(matchId)).toEqual(before);
    });

    it('puts a match back when its lease runs out, and refuses the report that comes after', async () => {
      const [one, two] = [await as(key), await as(other)];
      const matchId = await scene.propose();
      const late = await claimed(one, matchId);
      scene.clock.advance(LEASE_MS);
      await expect.poll(() => ofType(matchId, 'MatchRequeued')).toHaveLength(1);
      const [requeued] = await ofType(matchId, 'MatchRequeued');
      expect(requeued).toMatchObject({ reason: expect.stringMatching(/^The lease of runner r-[0-9a-f]+ ran out at /) });
      expect(await two.next(1, AbortSignal.timeout(10_000))).toEqual([matchId]);
      const order = await claimed(two, matchId);
      expect(order.attempt).toBe(2);
      await expect(one.report(signedReport(key, late, recordOf(late)))).rejects.toEqual(refused('ARENA.LEASE_LOST'));
      await expect(one.heartbeat(late)).rejects.toEqual(refused('ARENA.LEASE_LOST'));
      await two.report(signedReport(other, order, recordOf(order)));
      expect(await ofType(matchId, 'MatchSettled')).toHaveLength(1);
    });

    it('leaves a long match to the runner that keeps its lease', async () => {
      const port = await as(key);
      const matchId = await scene.propose();
      const order = await claimed(port, matchId);
      for (let i = 0; i < 6; i++) {
        scene.clock.advance(LEASE_MS - 1);
        await port.heartbeat(order);
      }
      expect(await (await as(other)).claim(matchId)).toBeUndefined();
      await port.report(signedReport(key, order, recordOf(order)));
      expect(await ofType(matchId, 'LeaseExtended')).toHaveLength(6);
      expect(await ofType(matchId, 'MatchRequeued')).toEqual([]);
    });

    it('counts failed attempts, and gives the match up after the third with the reason', async () => {
      const port = await as(key);
      const matchId = await scene.propose();
      for (const attempt of [1, 2, 3]) {
        const order = await claimed(port, matchId);
        expect(order.attempt).toBe(attempt);
        await port.fail(order, 'The cell died.');
      }
      expect(await ofType(matchId, 'MatchVoided')).toMatchObject([
        { reason: 'runner_failed', detail: 'The cell died.' },
      ]);
      expect(await port.claim(matchId)).toBeUndefined();
    });

    it('does not count what is handed back', async () => {
      const port = await as(key);
      const matchId = await scene.propose();
      for (let i = 0; i < 5; i++) {
        const order = await claimed(port, matchId);
        expect(order.attempt).toBe(1);
        await port.release(order, 'The runner is stopping.');
        await port.release(order, 'The runner is stopping.');
      }
      expect(await ofType(matchId, 'MatchReleased')).toHaveLength(5);
    });

    it('takes back what a runner had in hand when it starts again', async () => {
      const port = await as(key);
      const matchId = await scene.propose();
      await claimed(port, matchId);
      await expect.poll(() => scene.queue.leasesOf(runnerIdOf(key.publicKey))).toHaveLength(1);
      const again = await as(key);
      expect(await ofType(matchId, 'MatchRequeued')).toMatchObject([
        { reason: expect.stringContaining('started again') },
      ]);
      expect((await claimed(again, matchId)).attempt).toBe(2);
    });

    it("gives agents' code by its digest", async () => {
      const port = await as(key);
      const [digest = ''] = scene.codeDigests;
      expect(Buffer.from(await port.artifact(digest)).toString()).toBe(SOURCES[0]);
      await expect(port.artifact('0'.repeat(64))).rejects.toEqual(refused('ARTIFACT.MISSING'));
      await expect(port.artifact('../../etc/passwd')).rejects.toEqual(refused('ARTIFACT.BAD_DIGEST'));
    });

    it('believes a revoked key no more', async () => {
      const port = await as(key);
      const matchId = await scene.propose();
      const order = await claimed(port, matchId);
      const runnerId = runnerIdOf(key.publicKey);
      await scene.execute(new RevokeRunner({ runnerId, reason: 'stolen' }, newMeta(SYSTEM)));
      const report = signedReport(key, order, recordOf(order));
      await expect(port.report(report)).rejects.toEqual(refused('RUNNERS.UNKNOWN'));
      await expect(as(key)).rejects.toEqual(refused('RUNNERS.REVOKED'));
    });
  });
}
