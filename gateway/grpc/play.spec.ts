import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { type ChannelCredentials, type ClientDuplexStream, credentials, Metadata } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ArenaServiceClient,
  type ClientNote,
  PlayRequest,
  type PlayResponse,
  type ServerNote,
} from '../../proto/gen/agon/arena/v1/arena.js';
import {
  ServerReflectionClient,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from '../../proto/gen/grpc/reflection/v1/reflection.js';
import { errorOf } from '../../proto/status.js';
import { ExternalMatchHost } from '../../sandbox-runner/index.js';
import { IssueApiKey, type KeyScope, RegisterOwner, RevokeApiKey } from '../../services/accounts/index.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { RegisterExternalAgent } from '../../services/agents/index.js';
import { newMeta, SYSTEM } from '../../services/kernel/index.js';
import { bearerOfKey, newApiKey } from '../auth/api-key.js';
import { Directory } from '../auth/directory.js';
import { type PlayPorts, servePlay } from './play.js';
import { PlaySessions } from './play-sessions.js';
import { openScene, type Scene, withoutPlans } from './scene.contract.js';

type Note = NonNullable<ServerNote['what']>;

/** A stream as a client sees it, note by note. */
class Listener {
  readonly heard: Note[] = [];
  readonly ended: Promise<string>;
  private readonly stream: ClientDuplexStream<PlayRequest, PlayResponse>;
  private wake = () => {};

  constructor(client: ArenaServiceClient, key: string) {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${key}`);
    this.stream = client.play(metadata);
    this.ended = new Promise((resolve) => {
      this.stream.on('error', (error) => resolve(errorOf(error).code)).on('end', () => resolve('end'));
    });
    this.stream.on('data', ({ notes }: PlayResponse) => {
      for (const { what } of notes) if (what) this.heard.push(what);
      this.wake();
    });
  }

  say(...notes: NonNullable<ClientNote['what']>[]): this {
    this.stream.write({ notes: notes.map((what) => ({ what })) });
    return this;
  }

  hello(agent: string, openMatches: string[] = []): this {
    const hello = { agent, games: [], capacity: 0, client: 'spec', openMatches };
    return this.say({ $case: 'hello', hello });
  }

  act(matchId: string, turn: number, actionJson: string): this {
    const more = { reasoning: undefined, confidence: undefined, computeMs: undefined };
    return this.say({ $case: 'action', action: { matchId, turn, actionJson, ...more } });
  }

  /** The next note of this kind, and all before it are forgotten. */
  async next<Case extends Note['$case']>(wanted: Case): Promise<Extract<Note, { $case: Case }>> {
    for (;;) {
      const at = this.heard.findIndex(({ $case }) => $case === wanted);
      if (at >= 0) return this.heard.splice(0, at + 1).at(-1) as Extract<Note, { $case: Case }>;
      await Promise.race([
        new Promise<void>((resolve) => {
          this.wake = resolve;
        }),
        this.ended.then((code) => {
          throw new Error(`The stream ended with ${code} before ${wanted} came.`);
        }),
      ]);
    }
  }

  /** What comes of a hello: a welcome, or why the stream ended. */
  answer(): Promise<string> {
    const welcome = this.next('welcome').then(({ $case }) => $case);
    return Promise.race([this.ended, welcome.catch(() => this.ended)]);
  }

  hangUp(): void {
    this.stream.cancel();
  }
}

/** A call as it goes over the wire, for what no well-behaved client does. */
const callOf = (key: string) => ({
  ':method': 'POST',
  ':path': '/agon.arena.v1.ArenaService/Play',
  'content-type': 'application/grpc',
  te: 'trailers',
  authorization: `Bearer ${key}`,
});
function framed(message: Buffer, compressed = false): Buffer {
  const head = Buffer.from([compressed ? 1 : 0, 0, 0, 0, 0]);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const MATCH = '00000000-0000-4000-8000-000000000001';
const LIMITS = { clockInitMs: 60_000, clockTurnMs: 60_000, clockBankMs: 60_000 };
const external = (agentId: string) => ({
  agentId,
  source: '',
  codeDigest: '0'.repeat(64),
  runtime: 'external' as const,
});

describe('the endpoint for agents from outside', () => {
  let scene: Scene;
  let sessions: PlaySessions;
  let table: ExternalMatchHost;
  let endpoint: Awaited<ReturnType<typeof servePlay>>;
  let ports: PlayPorts;
  let client: ArenaServiceClient;
  const keys = new Map<string, string>();

  const meta = () => newMeta(SYSTEM, { clock: scene.clock });
  const issue = async (accountId: string, scopes: KeyScope[], agents?: string[]) => {
    const { keyId, text, secretHash } = newApiKey(accountId);
    const only = agents ? { agents } : {};
    await scene.execute(new IssueApiKey({ accountId, keyId, name: '', scopes, secretHash, ...only }, meta()));
    return { keyId, text };
  };
  const keyOf = (owner: string) => keys.get(owner) ?? '';
  const stream = (key = keyOf('ada')) => new Listener(client, key);
  const play = (agents = ['ada.bot', 'bob.bot']) =>
    table.play({ matchId: MATCH, game: 'tic-tac-toe', seed: 's', agents: agents.map(external) });

  beforeEach(async () => {
    scene = await openScene();
    sessions = new PlaySessions({ clock: scene.clock });
    const directory = new Directory(scene.ports.load);
    table = new ExternalMatchHost(sessions, { seat: () => Promise.reject(new Error('no cells here')) }, LIMITS);
    ports = {
      sessions,
      ...scene.ports,
      rakeBps: 1000,
      disputeWindowMs: 0,
      computeCents: '0',
      games: ['tic-tac-toe'],
      actorOf: (token: string) => (token === 'op' ? ({ id: 'operator', role: 'operator' } as const) : undefined),
      bearerOf: (token) => bearerOfKey(directory, token),
      assertSeats: () => {},
      houseAgents: async () => [],
      ...withoutPlans,
      limits: new MemoryLimits(Date.now),
      matches: async () => [],
    };
    endpoint = await servePlay(ports, { host: '127.0.0.1', port: 0 });
    client = new ArenaServiceClient(endpoint.address, credentials.createInsecure());
    for (const owner of ['ada', 'bob']) {
      await scene.execute(new RegisterOwner({ accountId: owner, displayName: owner }, meta()));
      await scene.execute(new RegisterExternalAgent({ ownerId: owner, name: 'bot', games: ['tic-tac-toe'] }, meta()));
      keys.set(owner, (await issue(owner, ['play', 'submit', 'read'])).text);
    }
  });

  afterEach(async () => {
    client.close();
    await endpoint.close();
    await table.close();
    await scene.close();
  });

  it('carries a match between two of them, action by action, and measures both times apart', async () => {
    const [ada, bob] = [stream().hello('ada.bot'), stream(keyOf('bob')).hello('bob.bot')];
    const record = play();
    // Ada takes the top row while Bob takes the middle one.
    for (const [turn, cell] of [0, 3, 1, 4, 2].entries()) {
      const mover = turn % 2 === 0 ? ada : bob;
      const { observation } = await mover.next('observation');
      expect(JSON.parse(observation.observationJson)).toMatchObject({ turn: turn + 1, seat: turn % 2 });
      mover.say({
        $case: 'action',
        action: {
          matchId: MATCH,
          turn: turn + 1,
          actionJson: `${cell}`,
          reasoning: 'why not',
          confidence: 0.5,
          computeMs: 0,
        },
      });
    }
    expect((await record).outcome).toMatchObject({ winner: 0, reason: 'line' });
    expect((await record).usage[0]).toMatchObject({ meter: 'clock', driver: 'external', claimedComputeMs: 0 });
    expect((await bob.next('result')).result).toMatchObject({ score: 0, reason: 'line', seat: 1 });
    expect((await ada.next('result')).result).toMatchObject({ score: 1, winner: 0 });
  });

  it('asks again whoever comes back, tells what was played, and gives results that were missed', async () => {
    const ada = stream().hello('ada.bot');
    const bob = stream(keyOf('bob')).hello('bob.bot');
    const record = play();
    await ada.next('observation');
    ada.act(MATCH, 1, '0');
    await bob.next('observation');
    bob.act(MATCH, 2, '3');
    await ada.next('observation');
    ada.hangUp();
    await expect.poll(() => sessions.isConnected('ada.bot')).toBe(false);
    const again = stream().hello('ada.bot', [MATCH]);
    expect((await again.next('welcome')).welcome.openMatches).toEqual([MATCH]);
    expect((await again.next('started')).started).toMatchObject({
      resumed: true,
      moves: [{ turn: 1, actionJson: '0' }],
    });
    expect((await again.next('observation')).observation).toMatchObject({ turn: 3 });
    again.hangUp();
    await expect.poll(() => sessions.isConnected('ada.bot')).toBe(false);
    bob.hangUp();
    await table.close();
    await expect(record).rejects.toMatchObject({ code: 'SANDBOX.CLOSED' });
  });

  it('tells a result again to whoever was away when it came', async () => {
    const connection = sessions.sit({ matchId: MATCH, agentId: 'ada.bot', game: 'tic-tac-toe', seat: 1 });
    connection.tell({ winner: 1, score: 1, reason: 'line' });
    connection.leave();
    const ada = stream().hello('ada.bot', [MATCH]);
    expect((await ada.next('result')).result).toMatchObject({ matchId: MATCH, winner: 1 });
  });

  it('refuses actions that come twice, late, or for nothing, and the match goes on', async () => {
    const [ada, bob] = [stream().hello('ada.bot'), stream(keyOf('bob')).hello('bob.bot')];
    const record = play();
    await ada.next('observation');
    const codeOf = async (from: Listener) => (await from.next('refused')).refused.code;
    expect(await codeOf(ada.act(MATCH, 1, '{'))).toBe('PLAY.BAD_JSON');
    expect(await codeOf(ada.act(MATCH, 1, `"${'x'.repeat(5_000)}"`))).toBe('PLAY.TOO_LARGE');
    expect(await codeOf(ada.act(MATCH, 2, '0'))).toBe('PLAY.NOT_ASKED');
    expect(await codeOf(ada.act(MATCH.replace('1', '2'), 1, '0'))).toBe('PLAY.NO_MATCH');
    ada.act(MATCH, 1, '0');
    await ada.next('accepted');
    expect(await codeOf(ada.act(MATCH, 1, '0'))).toBe('PLAY.NOT_ASKED');
    await bob.next('observation');
    bob.act(MATCH, 2, '0');
    expect((await record).outcome).toMatchObject({ reason: 'illegal_move', seatAtFault: 1 });
  });

  it('does not let an agent move for another, though both sit in the same match', async () => {
    const [ada, bob] = [stream().hello('ada.bot'), stream(keyOf('bob')).hello('bob.bot')];
    const record = play();
    await ada.next('observation');
    bob.act(MATCH, 1, '8');
    expect((await bob.next('refused')).refused.code).toBe('PLAY.NOT_ASKED');
    ada.act(MATCH, 1, '9');
    expect((await record).outcome).toMatchObject({ reason: 'bad_reply', seatAtFault: 0 });
  });

  it('has the newer of two streams of an agent play', async () => {
    const first = stream().hello('ada.bot');
    await first.next('welcome');
    await stream().hello('ada.bot').next('welcome');
    expect(await first.ended).toBe('PLAY.REPLACED');
    expect(sessions.isConnected('ada.bot')).toBe(true);
  });

  describe('lets nobody in', () => {
    it.each<[string, () => Promise<string>, string, string]>([
      ['without a key', async () => '', 'ada.bot', 'AUTH.UNAUTHENTICATED'],
      [
        'with a made-up key',
        async () => `agon_ada_${'0'.repeat(12)}_${'0'.repeat(64)}`,
        'ada.bot',
        'AUTH.UNAUTHENTICATED',
      ],
      [
        'with a key of the right id and another secret',
        async () => keyOf('ada').replace(/.{8}$/, '00000000'),
        'ada.bot',
        'AUTH.UNAUTHENTICATED',
      ],
      [
        'with the key of another account under this name',
        async () => keyOf('bob').replace('bob', 'ada'),
        'ada.bot',
        'AUTH.UNAUTHENTICATED',
      ],
      ['for an agent of somebody else', async () => keyOf('bob'), 'ada.bot', 'AUTH.FORBIDDEN'],
      ['for an agent whose name only begins alike', async () => keyOf('ada'), 'ada2.bot', 'AUTH.FORBIDDEN'],
      ['without the scope', async () => (await issue('ada', ['read'])).text, 'ada.bot', 'AUTH.SCOPE'],
      [
        'for an agent that the key does not name',
        async () => (await issue('ada', ['play'], ['ada.other'])).text,
        'ada.bot',
        'AUTH.FORBIDDEN',
      ],
      ['for an agent that is not there', async () => keyOf('ada'), 'ada.nobody', 'AGENTS.UNKNOWN'],
    ])('%s', async (_what, key, agent, code) => {
      expect(
        await stream(await key())
          .hello(agent)
          .answer(),
      ).toBe(code);
    });

    it('with a key that was revoked, and cuts the streams that it has open', async () => {
      const { keyId, text } = await issue('ada', ['play']);
      const open = stream(text).hello('ada.bot');
      await open.next('welcome');
      await scene.execute(new RevokeApiKey({ accountId: 'ada', keyId, reason: 'lost' }, meta()));
      sessions.revoke(keyId);
      expect(await open.ended).toBe('PLAY.REVOKED');
      expect(await stream(text).hello('ada.bot').answer()).toBe('AUTH.UNAUTHENTICATED');
    });

    it('with a key that was revoked late in a long history', async () => {
      const { keyId, text } = await issue('ada', ['play']);
      for (let i = 0; i < 5; i++) await issue('ada', ['read']);
      const open = stream(text).hello('ada.bot');
      await open.next('welcome');
      await scene.execute(new RevokeApiKey({ accountId: 'ada', keyId, reason: 'lost' }, meta()));
      expect(await stream(text).hello('ada.bot').answer()).toBe('AUTH.UNAUTHENTICATED');
    });
  });

  it('asks again, as time goes by, whether who plays by a token still may', async () => {
    let open = true;
    const bearer = { actor: { id: 'ada', role: 'owner' } } as const;
    const withTokens = { ...ports, bearerOf: async () => (open ? bearer : undefined) };
    const brisk = await servePlay(withTokens, { host: '127.0.0.1', port: 0, pingMs: 100 });
    const other = new ArenaServiceClient(brisk.address, credentials.createInsecure());
    const ada = new Listener(other, 'a-token').hello('ada.bot');
    for (let beats = 0; beats < 3; beats++) {
      const { ping } = await ada.next('ping');
      ada.say({ $case: 'pong', pong: ping });
    }
    open = false;
    expect(await ada.ended).toBe('AUTH.UNAUTHENTICATED');
    expect(sessions.isConnected('ada.bot')).toBe(false);
    other.close();
    await brisk.close();
  });

  const ask = (method: 'joinQueue' | 'registerAgent' | 'whoAmI' | 'leaveQueue', request: object, key = keyOf('ada')) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${key}`);
      const call = client[method].bind(client) as never as (
        r: object,
        m: Metadata,
        c: (e: unknown, a: never) => void,
      ) => unknown;
      call(request, metadata, (error, answer) => (error ? reject(errorOf(error)) : resolve(answer)));
    });
  const joining = (agent: string, change: object = {}) => ({
    agent,
    game: 'tic-tac-toe',
    stakeCents: '0',
    currency: 'PLAY',
    against: '',
    houseAfterMs: 0,
    waitMs: 30_000,
    ...change,
  });

  it('pairs those who wait, proposes their match, and says so to both', async () => {
    const [one, other] = await Promise.all([
      ask('joinQueue', joining('ada.bot')),
      ask('joinQueue', joining('bob.bot'), keyOf('bob')),
    ]);
    expect(one).toEqual(other);
    expect([...(one.agents as string[])].sort()).toEqual(['ada.bot', 'bob.bot']);
    expect(await scene.typesOf(String(one.matchId))).toEqual(['MatchProposed', 'MatchReady']);
  });

  it('lets an agent leave the queue, and refuses what cannot be', async () => {
    const waiting = ask('joinQueue', joining('ada.bot', { houseAfterMs: 3_600_000 }));
    const reason = expect.stringMatching(
      /^Nobody else's agent asks for tic-tac-toe .* The house may sit down at \d{4}-/,
    );
    await expect.poll(() => endpoint.waiting()).toMatchObject([{ agentId: 'ada.bot', game: 'tic-tac-toe', reason }]);
    await expect.poll(() => ask('leaveQueue', { agent: 'ada.bot' })).toMatchObject({ left: 1 });
    expect(await waiting).toMatchObject({ matchId: '' });
    expect(endpoint.waiting()).toEqual([]);
    await expect(ask('joinQueue', joining('bob.bot'))).rejects.toMatchObject({ code: 'AUTH.FORBIDDEN' });
    await expect(ask('joinQueue', joining('ada.bot', { game: 'go' }))).rejects.toMatchObject({
      code: 'SANDBOX.UNKNOWN_GAME',
    });
    await expect(ask('joinQueue', joining('ada.bot', { against: 'house' }))).rejects.toMatchObject({
      code: 'PLAY.NO_HOUSE',
    });
    const foreign = { owner: 'bob', name: 'mine', games: ['tic-tac-toe'] };
    await expect(ask('registerAgent', foreign)).rejects.toMatchObject({ code: 'AUTH.FORBIDDEN' });
    expect(await ask('whoAmI', {})).toMatchObject({ account: 'ada', scopes: ['play', 'submit', 'read'] });
  });

  it('ends a stream that floods it, and one that says nothing of itself twice', async () => {
    const ada = stream().hello('ada.bot');
    await ada.next('welcome');
    for (let i = 0; i < 500; i++) ada.act(MATCH, i, '0');
    expect(await ada.ended).toBe('PLAY.FLOOD');
    expect(await stream().hello('ada.bot').hello('ada.bot').ended).toBe('PLAY.TWO_HELLOS');
  });

  it('lets go of whoever does not read, and of nobody who does', async () => {
    // A client of grpc-js takes in whatever comes; this one takes nothing, and so its window stays shut.
    const session = connect(`http://${endpoint.address}`);
    const deaf = session.request(callOf(keyOf('ada')));
    const hello = { agent: 'ada.bot', games: [], capacity: 0, client: 'spec', openMatches: [] };
    deaf.write(framed(Buffer.from(PlayRequest.encode({ notes: [{ what: { $case: 'hello', hello } }] }).finish())));
    const bob = stream(keyOf('bob')).hello('bob.bot');
    await expect.poll(() => sessions.connected).toBe(2);
    const connections = ['ada.bot', 'bob.bot'].map((agentId) => {
      return sessions.sit({ matchId: MATCH, agentId, game: 'tic-tac-toe', seat: 0 });
    });
    let told = 0;
    const heardBy = (listener: Listener) => listener.heard.filter(({ $case }) => $case === 'result').length;
    for (let i = 0; i < 160; i++) {
      for (let j = 0; j < 200; j++)
        for (const connection of connections) connection.tell({ winner: 0, score: 1, reason: 'line' });
      told += 200;
      while (heardBy(bob) < told) await new Promise((resolve) => setImmediate(resolve));
    }
    await expect.poll(() => sessions.isConnected('ada.bot')).toBe(false);
    expect(sessions.isConnected('bob.bot')).toBe(true);
    session.destroy();
    await once(session, 'close');
  });

  it('lets go of whoever says nothing', async () => {
    const brisk = await servePlay(ports, { host: '127.0.0.1', port: 0, pingMs: 50 });
    const other = new ArenaServiceClient(brisk.address, credentials.createInsecure());
    expect(await new Listener(other, keyOf('ada')).ended).toBe('PLAY.NO_HELLO');
    expect(await new Listener(other, keyOf('ada')).hello('ada.bot').ended).toBe('PLAY.SILENT');
    other.close();
    await brisk.close();
  });

  it('refuses a message of 100 MB, and stands', async () => {
    const ada = stream().act(MATCH, 1, 'x'.repeat(100 * 1024 * 1024));
    expect(await ada.ended).toMatch(/GRPC.RESOURCE_EXHAUSTED|NET.UNAVAILABLE|GRPC.INTERNAL/);
    await stream().hello('ada.bot').next('welcome');
  });

  it('refuses a small message that would unpack to 100 MB, and stands', async () => {
    const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024));
    const session = connect(`http://${endpoint.address}`);
    const request = session.request({ ...callOf(keyOf('ada')), 'grpc-encoding': 'gzip' });
    const status = new Promise<string>((resolve) => {
      request.on(
        'response',
        (headers) => headers['grpc-status'] !== undefined && resolve(String(headers['grpc-status'])),
      );
      request.on('trailers', (trailers) => resolve(String(trailers['grpc-status'])));
      request.on('error', () => resolve('error'));
    });
    request.resume();
    request.write(framed(bomb, true));
    expect(await status).toBe('8');
    session.destroy();
    await once(session, 'close');
    await stream().hello('ada.bot').next('welcome');
  });

  it('speaks TLS, and with an authority only to those who have a certificate of it', async () => {
    const pem = readFileSync('sandbox-runner/fixtures/upstream.pem');
    const named = { 'grpc.ssl_target_name_override': 'upstream.test' };
    const secured = await servePlay(ports, { host: '127.0.0.1', port: 0, tls: { cert: pem, key: pem, clientCa: pem } });
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${keyOf('ada')}`);
    const who = (secrets: ChannelCredentials) =>
      new Promise<string>((resolve) => {
        const other = new ArenaServiceClient(secured.address, secrets, named);
        const deadline = new Date(Date.now() + 20_000);
        other.whoAmI({}, metadata, { deadline }, (error, answer) => {
          other.close();
          resolve(error ? errorOf(error).code : answer.account);
        });
      });
    expect(await who(credentials.createSsl(pem, pem, pem))).toBe('ada');
    expect(await who(credentials.createSsl(pem))).toBe('NET.UNAVAILABLE');
    expect(await who(credentials.createInsecure())).toBe('NET.UNAVAILABLE');
    await secured.close();
  });

  it('describes itself to whoever asks, if it was told to', async () => {
    const open = await servePlay(ports, { host: '127.0.0.1', port: 0, reflection: true });
    const ask = (address: string, request: NonNullable<ServerReflectionRequest['messageRequest']>) =>
      new Promise<ServerReflectionResponse['messageResponse'] | string>((resolve) => {
        const other = new ServerReflectionClient(address, credentials.createInsecure());
        const stream = other.serverReflectionInfo();
        stream.on('data', ({ messageResponse }: ServerReflectionResponse) => {
          stream.end();
          other.close();
          resolve(messageResponse);
        });
        stream.on('error', (error) => resolve(errorOf(error).code));
        stream.write({ host: '', messageRequest: request });
      });
    const list = { $case: 'listServices', listServices: '' } as const;
    expect(await ask(open.address, list)).toMatchObject({
      listServicesResponse: { service: [{ name: 'agon.arena.v1.ArenaService' }, { name: 'grpc.health.v1.Health' }] },
    });
    const symbol = { $case: 'fileContainingSymbol', fileContainingSymbol: 'agon.arena.v1.ArenaService.Play' } as const;
    const found = await ask(open.address, symbol);
    expect(found).toMatchObject({ $case: 'fileDescriptorResponse' });
    expect(JSON.stringify(found)).toBeTruthy();
    const missing = { $case: 'fileByFilename', fileByFilename: 'no/such.proto' } as const;
    expect(await ask(open.address, missing)).toMatchObject({ errorResponse: { errorCode: 5 } });
    expect(await ask(endpoint.address, list)).toBe('GRPC.UNIMPLEMENTED');
    await open.close();
  });
});
