import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pid, platform } from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Endpoint, openEndpoint, urlOf } from '../../gateway/eventstore/endpoint.contract.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { Host } from '../../services/runtime/host.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { type OwnDatabase, ownDatabase, ownRedis } from '../engines/shared.contract.js';
import { startArena } from './arena.js';
import { ClusterEngines } from './cluster.js';
import { processes } from './parts.js';

/** The way to an engine, which can be cut as if the engine was killed: whoever is on it is thrown off, and nobody gets in. */
async function wayTo(url: string) {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  const server = createServer((from) => {
    const to = connect(Number(port), hostname);
    for (const socket of [from, to])
      sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)));
    from.pipe(to);
    to.pipe(from);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const own = new URL(url);
  own.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  const cut = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: own.href, cut };
}

/** Each engine that is reached over a network, and by which words a message names it. */
const ENGINES = { log: /EventStoreDB|log/i, database: /PostgreSQL|database/i, redis: /Redis/i } as const;
type Engine = keyof typeof ENGINES;
const engines = Object.keys(ENGINES) as Engine[];

const folder = mkdtempSync(join(tmpdir(), 'agon-engines-'));
let database: OwnDatabase;
let redis: Awaited<ReturnType<typeof ownRedis>>;
let endpoint: Endpoint;

beforeAll(async () => {
  [database, redis, endpoint] = await Promise.all([ownDatabase(), ownRedis(), openEndpoint(new MemoryEventStore())]);
});
afterAll(async () => {
  await endpoint.close();
  redis.close();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function ways() {
  const urls = { log: urlOf(endpoint), database: database.url, redis: redis.url };
  const made = await Promise.all(engines.map(async (name) => [name, await wayTo(urls[name])] as const));
  return Object.fromEntries(made) as Record<Engine, Awaited<ReturnType<typeof wayTo>>>;
}

const quiet = { port: 0, cells: 1, logLevel: 'silent', analytics: false };
const configOf = (to: Awaited<ReturnType<typeof ways>>, dataDir: string) =>
  parseConfig({ ...quiet, dataDir, databaseUrl: to.database.url }, { AGON_STORE: to.log.url, REDIS_URL: to.redis.url });

const childrenOf = () =>
  platform === 'linux' ? readFileSync(`/proc/self/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean) : [];

/** What is told when this engine ends as this step of a start begins. */
async function toldWhen(
  engine: Engine,
  step: string,
): Promise<{ readonly steps: readonly string[]; readonly told: string }> {
  const to = await ways();
  const dataDir = join(folder, `${engine}-${step}`.replace(/\W+/g, '-'));
  const steps: string[] = [];
  const onStep = (name: string) => {
    steps.push(name);
    if (name === step) to[engine].cut();
  };
  const tell = async () => {
    const arena = await startArena(configOf(to, dataDir), { onStep });
    try {
      await arena.listen();
      // It had all that it wanted of it before; now it says that it is gone.
      const unwell = async () =>
        (await arena.status())
          .filter(({ ready }) => !ready)
          .map(({ part, detail }) => `${part}: ${detail}`)
          .join('\n');
      if (step !== '') await expect.poll(unwell, { timeout: 60_000 }).toMatch(ENGINES[engine]);
      return await unwell();
    } finally {
      await arena.stop();
    }
  };
  const told = await tell().catch((error: Error) => error.message);
  for (const way of Object.values(to)) way.cut();
  expect(existsSync(join(dataDir, 'lock.json'))).toBe(false);
  return { steps, told };
}

describe('an arena in one process', { timeout: 600_000 }, () => {
  it('names an engine that ends at any step of its start, and leaves nothing behind', async () => {
    const before = childrenOf();
    const whole = await toldWhen('redis', '');
    expect(whole.told).toBe('');
    expect(whole.steps).toEqual(
      expect.arrayContaining(['log', 'database', 'redis', 'projections', 'gateway', 'runner']),
    );
    for (const step of whole.steps) {
      const told = await Promise.all(
        engines.map(async (engine) => [engine, (await toldWhen(engine, step)).told] as const),
      );
      for (const [engine, text] of told) expect(text, `${engine} ended when ${step} began`).toMatch(ENGINES[engine]);
    }
    expect(childrenOf()).toEqual(before);
  });
});

describe('a process of a cluster', { timeout: 600_000 }, () => {
  it.each(Object.keys(processes).filter((name) => !('ownFolder' in processes[name as keyof typeof processes])))(
    '%s says which engine is away, waits for it, and ends when it is told to',
    async (name) => {
      for (const engine of engines) {
        const to = await ways();
        to[engine].cut();
        const given = { ...configOf(to, join(folder, name)), kafkaBrokers: ['127.0.0.1:1'], grpcPort: 0, playPort: 0 };
        const host = new Host({
          config: { ...given, arena: '127.0.0.1:1' },
          names: [name],
          engines: (own) => new ClusterEngines(own),
          waits: true,
        });
        const starting = host.start(processes[name as keyof typeof processes].parts);
        starting.catch(() => {});
        const unwell = async () =>
          (await host.status()).filter(({ ready }) => !ready).map(({ part, detail }) => `${part}: ${detail}`);
        await expect.poll(unwell, { timeout: 60_000 }).not.toEqual([]);
        await host.stop();
        for (const way of Object.values(to)) way.cut();
      }
      expect(childrenOf()).toEqual([]);
    },
  );
});
