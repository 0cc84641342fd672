import { credentials, Metadata, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArenaServiceClient, type WatchMatchResponse } from '../../proto/gen/agon/runner/v1/runner.js';
import { HealthClient } from '../../proto/gen/grpc/health/v1/health.js';
import type { Serving } from '../../proto/serve.js';
import { errorOf, grpcStatusOf, refusal } from '../../proto/status.js';
import {
  type ArenaPort,
  GrpcArena,
  type MatchRecord,
  signedReport,
  type WorkOrder,
} from '../../sandbox-runner/index.js';
import { isAuthentic } from '../../services/arena/index.js';
import {
  AgonError,
  newMeta,
  newSigningKey,
  randomIds,
  runnerIdOf,
  type SigningKey,
  SYSTEM,
} from '../../services/kernel/index.js';
import { RevokeRunner } from '../../services/runners/index.js';
import { localRunnerPort } from './part.js';
import { LEASE_MS, openScene, RUNNER_TOKEN, type Scene, SOURCES } from './scene.contract.js';
import { serveRunners } from './server.js';

interface Connection {
  readonly port: ArenaPort;
  close(): Promise<void>;
}

const recordOf = (order: WorkOrder, winner: 0 | 1 = 0): MatchRecord =>
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
function arenaPortContract(name: string, connect: (scene: Scene, key: SigningKey) => Promise<Connection>) {
  describe(`the write side, ${name}`, () => {
    let scene: Scene;
    let opened: Connection[];
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

const LOCAL = { host: '127.0.0.1', port: 0 };
const remote = (address: string, scene: Scene, key: SigningKey, options: object = {}) =>
  new GrpcArena({ address, token: RUNNER_TOKEN, key, clock: scene.clock, ids: randomIds, waitMs: 5_000, ...options });

arenaPortContract('in the same process', async (scene, key) => ({
  port: await localRunnerPort(scene.ports, key),
  close: async () => {},
}));

arenaPortContract('over gRPC', async (scene, key) => {
  const server = await doorOf(scene);
  const port = remote(server.address, scene, key);
  await port.connect();
  return { port, close: async () => port.close() };
});

/** One endpoint a scene, for as many runners as come. */
const endpoints = new WeakMap<Scene, Promise<Serving>>();
function doorOf(scene: Scene): Promise<Serving> {
  const known = endpoints.get(scene);
  if (known) return known;
  const endpoint = serveRunners(scene.ports, LOCAL);
  endpoints.set(scene, endpoint);
  const { close } = scene;
  scene.close = async () => {
    await (await endpoint).close();
    await close();
  };
  return endpoint;
}

describe('the endpoint for runners', () => {
  let scene: Scene;
  let server: Serving;
  const key = newSigningKey();
  const clients: { close(): void }[] = [];
  beforeEach(async () => {
    scene = await openScene();
    server = await doorOf(scene);
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    await scene.close();
  });
  const closing = <T extends { close(): void }>(client: T): T => {
    clients.push(client);
    return client;
  };
  const arena = (options: object = {}, who = key) => closing(remote(server.address, scene, who, options));
  const plain = () => closing(new ArenaServiceClient(server.address, credentials.createInsecure()));
  const refused = (code: string) => expect.objectContaining({ code });
  /** The queue hears of a claim by the log, a moment later. */
  const leased = (order: WorkOrder | undefined) =>
    expect.poll(() => scene.queue.leasesOf(runnerIdOf(key.publicKey))).toMatchObject([{ matchId: order?.matchId }]);

  it('asks for the runner token before it lets a key register', async () => {
    await expect(arena({ token: 'guessed' }).connect()).rejects.toEqual(refused('AUTH.UNAUTHENTICATED'));
    await expect(arena({ token: 'operator' }).connect()).rejects.toEqual(refused('AUTH.UNAUTHENTICATED'));
  });

  it.each<[string, object, string]>([
    ['an old registration', { clock: () => '2026-03-01T11:54:59.000Z' }, 'RUNNERS.CLOCK_SKEW'],
    ['one of no time', { clock: () => 'now' }, 'RUNNERS.CLOCK_SKEW'],
    ['one signed by another', { key: { ...key, sign: newSigningKey().sign } }, 'RUNNERS.BAD_SIGNATURE'],
  ])('refuses %s', async (_what, options, code) => {
    await expect(arena(options).connect()).rejects.toEqual(refused(code));
  });

  it('knows nobody without a session', async () => {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${RUNNER_TOKEN}`);
    const error = await new Promise<unknown>((resolve) => {
      plain().claim({ matchId: 'x', claimId: 'y' }, metadata, (refusal) => resolve(refusal));
    });
    expect(error).toMatchObject({ code: status.UNAUTHENTICATED });
    expect(errorOf(error)).toEqual(refused('AUTH.UNAUTHENTICATED'));
  });

  it('goes on with the later of two processes that have one key', async () => {
    const [first, second] = [arena(), arena()];
    await first.connect();
    await second.connect();
    const matchId = await scene.propose();
    await expect(first.claim(matchId)).rejects.toEqual(refused('RUNNERS.REPLACED'));
    expect(await second.claim(matchId)).toMatchObject({ attempt: 1 });
  });

  it('lets a runner keep what it has in hand when the endpoint was closed and opened again', async () => {
    let order: WorkOrder | undefined;
    const port = arena({ holding: () => (order ? [order] : []) });
    const matchId = await scene.propose();
    order = await port.claim(matchId);
    await leased(order);
    await server.close();
    const [, number] = server.address.split(':');
    endpoints.delete(scene);
    const reopened = await serveRunners(scene.ports, { ...LOCAL, port: Number(number) });
    try {
      if (order) await port.report(signedReport(key, order, recordOf(order)));
      expect(await scene.typesOf(matchId)).toContain('MatchSettled');
      expect(await scene.typesOf(matchId)).not.toContain('MatchRequeued');
    } finally {
      await reopened.close();
    }
  });

  it('shows a match while it is played, to those who may look', async () => {
    const port = arena();
    const matchId = await scene.propose();
    const order = (await port.claim(matchId)) as WorkOrder;
    await leased(order);
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${RUNNER_TOKEN}`);
    const seen: WatchMatchResponse[] = [];
    const watching = plain().watchMatch({ matchId }, metadata);
    watching.on('data', (response: WatchMatchResponse) => seen.push(response)).on('error', () => {});
    port.progress(order, { kind: 'turn', turn: { turn: 1, seat: 0, action: 4, fuel: 7 } });
    port.progress(order, { kind: 'log', seat: 1, text: 'hm' });
    await expect.poll(() => seen.at(-1)?.progress?.what).toEqual({ $case: 'log', log: { seat: 1, text: 'hm' } });
    const turnJson = '{"action":4,"fuel":7,"seat":0,"turn":1}';
    expect(seen.map(({ progress }) => progress?.what)[0]).toEqual({ $case: 'turnJson', turnJson });
    watching.cancel();
    const stranger = plain().watchMatch({ matchId });
    const error = await new Promise<unknown>((resolve) => stranger.on('error', resolve).on('data', () => {}));
    expect(errorOf(error)).toEqual(refused('AUTH.UNAUTHENTICATED'));
  });

  it('says that it is well', async () => {
    const health = closing(new HealthClient(server.address, credentials.createInsecure()));
    const check = (service: string) =>
      new Promise((resolve) => {
        health.check({ service }, (error, response) => resolve(error?.code ?? response?.status));
      });
    expect(await check('')).toBe(1);
    expect(await check('agon.runner.v1.ArenaService')).toBe(1);
    expect(await check('no.such.Service')).toBe(status.NOT_FOUND);
  });

  it('hides what went wrong inside', async () => {
    const port = arena();
    const matchId = await scene.propose();
    await port.connect();
    const { store } = scene;
    store.head = () => Promise.reject(new TypeError('secret of the house'));
    const order = (await port.claim(matchId)) as WorkOrder;
    const error = await port.release(order, 'x').catch((thrown: AgonError) => thrown);
    expect(error).toMatchObject({ code: 'INTERNAL' });
    expect(String((error as AgonError).message)).not.toMatch(/secret/);
    expect(scene.errors.map(String)).toEqual(['TypeError: secret of the house']);
  });
});

describe('refusals on the wire', () => {
  it.each([
    ['AUTH.UNAUTHENTICATED', status.UNAUTHENTICATED],
    ['AUTH.FORBIDDEN', status.PERMISSION_DENIED],
    ['COMMAND.INVALID', status.INVALID_ARGUMENT],
    ['ARENA.UNKNOWN_MATCH', status.NOT_FOUND],
    ['ARENA.LEASE_LOST', status.FAILED_PRECONDITION],
    ['ARENA.BAD_SIGNATURE', status.PERMISSION_DENIED],
    ['SANDBOX.QUEUE_FULL', status.RESOURCE_EXHAUSTED],
    ['WHAT.EVER', status.INTERNAL],
  ])('%s has its status', (code, expected) => expect(grpcStatusOf(code)).toBe(expected));

  it('keep code, words and details', () => {
    const error = new AgonError('ARENA.LEASE_LOST', 'Too late.', { attempt: 2 });
    expect(errorOf(refusal(error))).toMatchObject({
      code: 'ARENA.LEASE_LOST',
      message: 'Too late.',
      details: { attempt: 2 },
    });
  });
});
