import { once } from 'node:events';
import { connect } from 'node:http2';
import { connect as dial } from 'node:net';
import { networkInterfaces } from 'node:os';
import { credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArenaServiceClient } from '../../proto/gen/agon/arena/v1/arena.js';
import { ErrorInfo, RetryInfo } from '../../proto/gen/google/rpc/error_details.js';
import { Status } from '../../proto/gen/google/rpc/status.js';
import { errorOf } from '../../proto/status.js';
import { IssueApiKey, ownerScopes, RegisterOwner } from '../../services/accounts/index.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { RegisterExternalAgent } from '../../services/agents/index.js';
import { newMeta, type RateLimits, SYSTEM } from '../../services/kernel/index.js';
import { bearerOfKey, newApiKey } from '../auth/api-key.js';
import { Directory } from '../auth/directory.js';
import { type PlayOptions, type PlayPorts, servePlay } from './play.js';
import { PlaySessions } from './play-sessions.js';
import { openScene, type Scene, withoutPlans } from './scene.contract.js';

const HOUSE = 'keeper.one';
const joining = { game: 'tic-tac-toe', stakeCents: '0', currency: 'PLAY', houseAfterMs: 0, waitMs: 1 };

describe('limits at the endpoint for agents', () => {
  let scene: Scene;
  let ports: PlayPorts;
  /** Buckets of a clock that stands still: what is taken stays taken. */
  let limits: RateLimits;
  let key: string;
  let other: string;
  const endpoints: { close(): Promise<void> }[] = [];
  const clients: ArenaServiceClient[] = [];

  const keyOf = async (accountId: string, agents?: string[]) => {
    const meta = newMeta(SYSTEM, { clock: scene.clock });
    const { keyId, text, secretHash } = newApiKey(accountId);
    const only = agents ? { agents } : {};
    await scene.execute(
      new IssueApiKey({ accountId, keyId, name: '', scopes: [...ownerScopes], secretHash, ...only }, meta),
    );
    return text;
  };
  const register = async (ownerId: string, name: string) => {
    const meta = newMeta(SYSTEM, { clock: scene.clock });
    await scene.execute(new RegisterExternalAgent({ ownerId, name, games: ['tic-tac-toe'] }, meta));
  };

  beforeEach(async () => {
    scene = await openScene();
    limits = new MemoryLimits(() => 0);
    const directory = new Directory(scene.ports.load);
    ports = {
      sessions: new PlaySessions({ clock: scene.clock }),
      ...scene.ports,
      rakeBps: 1000,
      disputeWindowMs: 0,
      computeCents: '0',
      games: ['tic-tac-toe'],
      ...withoutPlans,
      limits,
      actorOf: () => undefined,
      assertSeats: () => {},
      bearerOf: (token) => bearerOfKey(directory, token),
      houseAgents: async () => [HOUSE],
      matches: async () => [],
    };
    for (const owner of ['ada', 'bob', 'keeper']) {
      await scene.execute(
        new RegisterOwner({ accountId: owner, displayName: owner }, newMeta(SYSTEM, { clock: scene.clock })),
      );
    }
    for (const name of ['bot', 'second']) await register('ada', name);
    await register('bob', 'bot');
    await register('keeper', 'one');
    [key, other] = [await keyOf('ada'), await keyOf('bob')];
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    for (const endpoint of endpoints.splice(0)) await endpoint.close();
    await scene.close();
  });

  const open = async (options: Partial<PlayOptions> = {}) => {
    const endpoint = await servePlay(ports, { host: '127.0.0.1', port: 0, ...options });
    endpoints.push(endpoint);
    const client = new ArenaServiceClient(endpoint.address, credentials.createInsecure());
    clients.push(client);
    return { client, address: endpoint.address };
  };
  const metadataOf = (token: string, from?: string) => {
    const metadata = new Metadata();
    if (token !== '') metadata.set('authorization', `Bearer ${token}`);
    if (from !== undefined) metadata.set('x-forwarded-for', from);
    return metadata;
  };
  /** The code of the refusal, or "ok". */
  const who = (client: ArenaServiceClient, metadata: Metadata) =>
    new Promise<string>((resolve) =>
      client.whoAmI({}, metadata, (error) => resolve(error ? errorOf(error).code : 'ok')),
    );
  const join = (client: ArenaServiceClient, agent: string, against = '', token = key) =>
    new Promise<string>((resolve) =>
      client.joinQueue({ ...joining, agent, against }, metadataOf(token), (error) =>
        resolve(error ? errorOf(error).code : 'ok'),
      ),
    );
  const countOk = async (times: number, ask: () => Promise<string>) => {
    const said = await Promise.all(Array.from({ length: times }, ask));
    expect(new Set(said)).toEqual(new Set(['ok', 'LIMITS.EXCEEDED']));
    return said.filter((each) => each === 'ok').length;
  };

  it('are a bucket for each agent, and one for the account where no agent is meant', async () => {
    const { client } = await open();
    expect(await countOk(250, () => join(client, 'ada.bot'))).toBe(200);
    expect(await join(client, 'ada.second')).toBe('ok');
    expect(await countOk(250, () => who(client, metadataOf(key)))).toBe(200);
    expect(await join(client, 'ada.second')).toBe('ok');
    expect(await who(client, metadataOf(other))).toBe('ok');
  });

  it('count names that nobody has registered for the account, and a stranger’s calls for the stranger', async () => {
    const { client } = await open();
    const said = await Promise.all(Array.from({ length: 250 }, (_, i) => join(client, `ada.no-${i}`)));
    expect(said.filter((each) => each === 'AGENTS.UNKNOWN')).toHaveLength(200);
    const foreign = await Promise.all(Array.from({ length: 250 }, () => join(client, 'ada.bot', '', other)));
    expect(foreign.filter((each) => each === 'AUTH.FORBIDDEN')).toHaveLength(200);
    expect(await join(client, 'ada.bot')).toBe('ok');
  });

  it('hold a match against the house dearer than a call', async () => {
    const { client } = await open();
    expect(await countOk(150, () => join(client, 'ada.bot', 'house'))).toBe(120);
    expect(await join(client, 'ada.second', HOUSE)).toBe('LIMITS.EXCEEDED');
    expect(await join(client, 'ada.second')).toBe('ok');
    expect(await join(client, 'bob.bot', 'house', other)).toBe('ok');
  });

  it('say how long to wait, also in the words of every other client of gRPC', async () => {
    const { client } = await open();
    await limits.take('actor:ada', { perMinute: 100, burst: 200 }, 200);
    const error = await new Promise<ServiceError | null>((resolve) => client.whoAmI({}, metadataOf(key), resolve));
    expect(error?.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(errorOf(error)).toMatchObject({ code: 'LIMITS.EXCEEDED', details: { retryAfterMs: 600 } });
    const [sent] = error?.metadata.get('grpc-status-details-bin') ?? [];
    const { code, details } = Status.decode(sent as Buffer);
    expect(code).toBe(8);
    expect(details.map(({ typeUrl }) => typeUrl)).toEqual([
      'type.googleapis.com/google.rpc.ErrorInfo',
      'type.googleapis.com/google.rpc.RetryInfo',
    ]);
    expect(ErrorInfo.decode(details[0]?.value as Buffer)).toEqual({
      reason: 'LIMITS_EXCEEDED',
      domain: 'agon',
      metadata: { code: 'LIMITS.EXCEEDED' },
    });
    expect(RetryInfo.decode(details[1]?.value as Buffer).retryDelay).toEqual({ seconds: 0n, nanos: 600_000_000 });
  });

  it('hold for an address before anybody is known, for its whole network, and behind as many proxies as there are', async () => {
    const { client } = await open({ proxies: 1 });
    let at = 0;
    const stranger = () =>
      who(client, metadataOf('', `198.51.100.${++at % 200}, 2001:db8:0:1::${(++at).toString(16)}`));
    const said: string[] = [];
    while (said.length < 2_500) said.push(...(await Promise.all(Array.from({ length: 250 }, stranger))));
    expect(said.filter((each) => each === 'AUTH.UNAUTHENTICATED')).toHaveLength(2_400);
    expect(said.filter((each) => each === 'LIMITS.EXCEEDED')).toHaveLength(100);
    expect(await who(client, metadataOf(key, '2001:db8:0:2::1'))).toBe('ok');
  });

  it('stand a flood of streams: one address has so many open, and others come in', async () => {
    const most = { connectionsMax: 100, connectionsPerAddressMax: 100, callsMax: 60, callsPerAddressMax: 40 };
    const { client } = await open({ proxies: 1, most });
    const streamFrom = (ip: string) => {
      const stream = client.play(metadataOf(key, ip));
      const ended = new Promise<string>((resolve) => stream.on('error', (error) => resolve(errorOf(error).code)));
      stream.resume();
      return { stream, ended };
    };
    const flood = Array.from({ length: 200 }, () => streamFrom('203.0.113.1'));
    const refused = flood.slice(40).map(({ ended }) => ended);
    expect(new Set(await Promise.all(refused))).toEqual(new Set(['LIMITS.TOO_MANY_CALLS']));
    expect(await who(client, metadataOf(key, '203.0.113.1'))).toBe('LIMITS.TOO_MANY_CALLS');
    expect(await who(client, metadataOf(key, '203.0.113.2'))).toBe('ok');
    for (const { stream } of flood) stream.cancel();
    await expect.poll(() => who(client, metadataOf(key, '203.0.113.1'))).toBe('ok');
  });

  it('let one connection have so many calls at a time, whatever its client thinks of that', async () => {
    const { address } = await open();
    const session = connect(`http://${address}`);
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxConcurrentStreams).toBe(256);
    session.destroy();
    await once(session, 'close');
  });

  const outside = Object.values(networkInterfaces())
    .flat()
    .find((each) => each && !each.internal && each.family === 'IPv4')?.address;
  it.skipIf(outside === undefined)('let one address have so many connections', async () => {
    const most = { connectionsMax: 100, connectionsPerAddressMax: 3, callsMax: 60, callsPerAddressMax: 40 };
    const { address } = await open({ host: outside ?? '', most });
    const [host, port] = address.split(':') as [string, string];
    const sockets = Array.from({ length: 5 }, () => dial({ host, port: Number(port), localAddress: host }));
    const closed = new Set<unknown>();
    for (const socket of sockets) socket.on('error', () => {}).on('close', () => closed.add(socket));
    await expect.poll(() => closed.size).toBe(2);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => closed.size).toBe(5);
    const again = dial({ host, port: Number(port), localAddress: host });
    await once(again, 'data');
    again.destroy();
  });
});
