import { join } from 'node:path';
import pg from 'pg';
import type { SealedEvent } from '../../services/kernel/index.js';
import { startPostgres } from '../engines/postgres.js';
import type { Log } from './logs.js';
import { loadPeer } from './peers.js';

interface EmmettStore {
  appendToStream(
    stream: string,
    events: readonly { type: string; data: unknown; metadata: unknown }[],
    options: { expectedStreamVersion: bigint },
  ): Promise<unknown>;
  schema: { migrate(): Promise<unknown> };
  close(): Promise<void>;
}

type Open = (url: string, options: { connectionOptions: { pool: pg.Pool } }) => EmmettStore;

/** Connections of emmett's pool: more than this was not faster on two cores. */
const CONNECTIONS = 16;

export interface Emmett {
  open(): Promise<Log>;
  stop(): Promise<void>;
}

/** emmett-postgresql on a PostgreSQL of its own, with the durability that the others have. */
export async function startEmmett(folder: string): Promise<Emmett> {
  const postgres = await startPostgres({ folder: join(folder, 'postgres') });
  // The arena's PostgreSQL holds derived rows and may commit lazily; an event store may not.
  await query(postgres.url, 'ALTER DATABASE postgres SET synchronous_commit = on');
  const { getPostgreSQLEventStore } = loadPeer<{ getPostgreSQLEventStore: Open }>('@event-driven-io/emmett-postgresql');
  const open = async (): Promise<Log> => {
    await query(postgres.url, 'DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    const pool = new pg.Pool({ connectionString: postgres.url, max: CONNECTIONS });
    const store = getPostgreSQLEventStore(postgres.url, { connectionOptions: { pool } });
    await store.schema.migrate();
    return {
      append: ({ stream, revision, type, data, ...metadata }: SealedEvent) =>
        store.appendToStream(stream, [{ type, data, metadata }], { expectedStreamVersion: BigInt(revision) }),
      close: async () => {
        await store.close();
        await pool.end();
      },
    };
  };
  return { open, stop: () => postgres.stop() };
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}
