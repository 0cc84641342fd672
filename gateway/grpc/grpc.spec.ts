import { credentials, Metadata, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArenaServiceClient, type WatchMatchResponse } from '../../proto/gen/agon/runner/v1/runner.js';
import { HealthClient } from '../../proto/gen/grpc/health/v1/health.js';
import type { Serving } from '../../proto/serve.js';
import { errorOf, grpcStatusOf, refusal } from '../../proto/status.js';
import { GrpcArena, signedReport, type WorkOrder } from '../../sandbox-runner/index.js';
import { AgonError, newSigningKey, randomIds, runnerIdOf, type SigningKey } from '../../services/kernel/index.js';
import { arenaPortContract, recordOf } from './arena-port.contract.js';
import { localRunnerPort } from './part.js';
import { openScene, RUNNER_TOKEN, type Scene } from './scene.contract.js';
import { serveRunners } from './server.js';

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

/** One door a scene, for as many runners as come. */
const doors = new WeakMap<Scene, Promise<Serving>>();
function doorOf(scene: Scene): Promise<Serving> {
  const known = doors.get(scene);
  if (known) return known;
  const door = serveRunners(scene.ports, LOCAL);
  doors.set(scene, door);
  const { close } = scene;
  scene.close = async () => {
    await (await door).close();
    await close();
  };
  return door;
}

describe('the door for runners', () => {
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

  it('lets a runner keep what it has in hand when the door was closed and opened again', async () => {
    let order: WorkOrder | undefined;
    const port = arena({ holding: () => (order ? [order] : []) });
    const matchId = await scene.propose();
    order = await port.claim(matchId);
    await leased(order);
    await server.close();
    const [, number] = server.address.split(':');
    doors.delete(scene);
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
