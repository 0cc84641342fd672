import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openScene, type Scene } from '../../gateway/grpc/scene.contract.js';
import { MemoryCheckpoints } from '../adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../adapters/bus/embedded.js';
import { ProposeMatch, VoidMatch } from '../arena/index.js';
import { followMatches } from '../arena/part.js';
import {
  type BatchHandler,
  type Bus,
  type Checkpoints,
  type ConsumerOptions,
  derivedId,
  newMeta,
  SYSTEM,
} from '../kernel/index.js';
import type { Engines } from './engines.js';
import { Host } from './host.js';
import { serveWhileLeader } from './serve.js';
import { parseConfig } from './settings.js';

let scene: Scene;
let host: Host;
let checkpoints: MemoryCheckpoints;
let member: Member;
let server: string[];

/** A member of a group that gets the work, and loses it, when it is told to. */
class Member implements Bus {
  private bus: EmbeddedBus | undefined;
  private position = () => 0;
  private join = async () => {};

  constructor(private readonly behind: Checkpoints) {}

  async consume(options: ConsumerOptions, handler: BatchHandler) {
    this.join = async () => {
      this.bus = new EmbeddedBus(scene.store, this.behind);
      this.position = (await this.bus.consume(options, handler)).position;
    };
    const stop = () => this.close();
    const active = () => this.bus !== undefined;
    return { stop, done: new Promise<void>(() => {}), position: () => this.position(), active };
  }

  take = () => this.join();
  heardOf = () => this.position();

  async close(): Promise<void> {
    const { bus } = this;
    this.bus = undefined;
    await bus?.close();
  }
}

beforeEach(async () => {
  scene = await openScene();
  const engines = {
    log: async () => scene.store,
    checkpoints: async () => checkpoints,
    bus: async () => (behind: Checkpoints) => {
      member = new Member(behind);
      return member;
    },
  };
  host = new Host({
    config: parseConfig({ logLevel: 'silent', playWaitMs: 60_000 }, {}),
    names: ['arena'],
    engines: () => engines as unknown as Engines,
    waits: true,
    clock: scene.clock,
  });
  checkpoints = new MemoryCheckpoints();
  server = [];
});

afterEach(async () => {
  await host.stop();
  for (const stop of stopping.splice(0).reverse()) await stop();
  await scene.close();
});

const stopping: (() => Promise<unknown> | undefined)[] = [];

async function queue() {
  const queue = await followMatches(host, scene.execute, 'runner');
  stopping.push(queue.stop);
  return queue;
}

const open = async () => {
  server.push('open');
  const close = async () => void server.push('closed');
  return { address: 'here:1', close };
};

const partOf = async (name: string) => (await host.status()).find(({ part }) => part === name);
const voidMatch = (matchId: string) =>
  scene.execute(new VoidMatch({ matchId, detail: 'elsewhere' }, newMeta(SYSTEM, { clock: scene.clock })));

describe('a server of a process with the queue', () => {
  it('is open while it has the queue, and begins anew when it has it again', async () => {
    const [first, second] = [await scene.propose(), await scene.propose()];
    const work = await queue();
    const serving = serveWhileLeader(host, 'server', work, open);
    await expect
      .poll(() => partOf('server'))
      .toMatchObject({ ready: false, detail: expect.stringMatching('stands by') });
    expect(server).toEqual([]);

    await member.take();
    expect((await serving).value).toEqual({ address: 'here:1' });
    stopping.push((await serving).stop ?? (async () => {}));
    expect(await partOf('server')).toMatchObject({ ready: true, detail: 'here:1' });
    expect(work.queue.counts.runners.waiting).toBe(2);

    await member.close();
    await expect.poll(() => server).toEqual(['open', 'closed']);
    expect(work.queue.size).toBe(0);
    await expect.poll(() => partOf('server')).toMatchObject({ ready: false });

    // Another process sees the first to its end, and says so in the checkpoint: it is never heard of here again.
    await voidMatch(first);
    await checkpoints.save('runner', 2);
    await member.take();
    await expect.poll(() => server).toEqual(['open', 'closed', 'open']);
    expect(await work.queue.next(5, AbortSignal.timeout(0))).toEqual([second]);
    await voidMatch(second);
    await expect.poll(() => work.queue.firstOpen).toBeUndefined();
  });

  it('stays shut until everything was heard, and closes with the process', async () => {
    await scene.propose();
    const work = await queue();
    let heard = 0;
    const serving = serveWhileLeader(host, 'server', { ...work, active: () => true, heard: () => heard }, open);
    await expect.poll(() => partOf('server')).toMatchObject({ detail: 'the queue has heard 0 of 2' });
    expect(server).toEqual([]);
    heard = 2;
    const { stop } = await serving;
    await host.stop();
    await stop?.();
    expect(server).toEqual(['open', 'closed']);
  });
});

describe('a match with an agent from outside', () => {
  it('is voided, and says why, when no table takes it in time', async () => {
    await queue();
    await member.take();
    const { clock, execute } = scene;
    const matchId = derivedId('outside');
    const seats = ['ada', 'bob'].map((accountId) => ({
      agentId: `${accountId}.bot`,
      accountId,
      version: 1,
      codeDigest: 'a'.repeat(64),
      runtime: 'external' as const,
    }));
    const terms = { matchId, game: 'tic-tac-toe', stakeCents: '0', currency: 'PLAY', seed: 's', seats, rakeBps: 1000 };
    await execute(new ProposeMatch(terms, newMeta(SYSTEM, { clock })));
    const hosted = await scene.propose();
    await expect.poll(() => member.heardOf()).toBe(4);
    clock.advance(60_000);
    await expect.poll(() => scene.typesOf(matchId), { timeout: 5_000 }).toContain('MatchVoided');
    const voided = (await scene.eventsOf(matchId)).find(({ type }) => type === 'MatchVoided');
    expect(voided?.data).toMatchObject({ reason: 'runner_failed', detail: expect.stringMatching('AGON_PLAY_PORT') });
    expect(await scene.typesOf(hosted)).toEqual(['MatchProposed', 'MatchReady']);
  });
});
