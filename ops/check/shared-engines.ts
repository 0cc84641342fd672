import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startKafka } from '../engines/kafka.js';
import { startPostgres } from '../engines/postgres.js';
import { startRedis } from '../engines/redis.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the server below answers; only `*.int.spec.ts` and `*.e2e.spec.ts` have it. */
    engines: string;
  }
}

interface Running {
  /** What a spec needs to reach it. */
  address(): unknown;
  stop(): Promise<void>;
}

const CONNECTIONS_MAX = 300;
/** Each spec file gets a database of its own. */
const REDIS_DATABASES = 512;

const starters: Readonly<Record<string, (folder: string) => Promise<Running>>> = {
  async postgres(folder) {
    const { url, stop } = await startPostgres({ folder, connectionsMax: CONNECTIONS_MAX });
    return { address: () => ({ url }), stop };
  },
  async redis(folder) {
    const redis = await startRedis({ folder, databases: REDIS_DATABASES });
    let given = 0;
    return { address: () => ({ url: `${redis.url}/${given++}` }), stop: () => redis.stop() };
  },
  async kafka(folder) {
    const kafka = await startKafka({ folder, secured: true });
    return { address: () => ({ brokers: kafka.brokers, secured: kafka.secured }), stop: () => kafka.stop() };
  },
};

/**
 * One PostgreSQL, one Redis and one Kafka for all specs of a run. Each is started by the first spec that asks for it, so
 * that a run of one file starts what that file needs and nothing else, and ends with the run. Specs are processes of
 * their own: they ask over loopback, by the functions of ops/engines/shared.contract.ts.
 */
export default async function shareEngines(project: TestProject): Promise<() => Promise<void>> {
  const folders: string[] = [];
  const running = new Map<string, Promise<Running>>();
  const start = (name: string): Promise<Running> => {
    const starter = starters[name];
    if (!starter) throw new Error(`There is no shared engine "${name}".`);
    const folder = mkdtempSync(join(tmpdir(), `agon-shared-${name}-`));
    folders.push(folder);
    return starter(folder);
  };
  const server = createServer(async (request, response) => {
    const name = request.url?.slice(1) ?? '';
    try {
      const engine = running.get(name) ?? start(name);
      running.set(name, engine);
      response.end(JSON.stringify((await engine).address()));
    } catch (error) {
      response.writeHead(500).end(JSON.stringify({ message: (error as Error).message }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  project.provide('engines', `http://127.0.0.1:${port}`);
  return async () => {
    server.close();
    for (const engine of running.values()) await engine.then(({ stop }) => stop()).catch(() => {});
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  };
}
