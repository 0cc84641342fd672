import pg from 'pg';
import type { SealedEvent } from '../../services/kernel/index.js';
import { runSql, withPostgres } from '../harness/folders.js';
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

/** emmett-postgresql on a PostgreSQL of its own, with the durability that the others have. */
export function withEmmett<T>(use: (open: () => Promise<Log>) => Promise<T>): Promise<T> {
  const { getPostgreSQLEventStore } = loadPeer<{ getPostgreSQLEventStore: Open }>('@event-driven-io/emmett-postgresql');
  return withPostgres(async (url) => {
    // The arena's PostgreSQL holds derived rows and may commit lazily; an event store may not.
    await runSql(url, 'ALTER DATABASE postgres SET synchronous_commit = on');
    return use(async () => {
      await runSql(url, 'DROP SCHEMA public CASCADE; CREATE SCHEMA public');
      const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
      const store = getPostgreSQLEventStore(url, { connectionOptions: { pool } });
      await store.schema.migrate();
      return {
        append: ({ stream, revision, type, data, ...metadata }: SealedEvent) =>
          store.appendToStream(stream, [{ type, data, metadata }], { expectedStreamVersion: BigInt(revision) }),
        close: async () => {
          await store.close();
          await pool.end();
        },
      };
    });
  });
}
