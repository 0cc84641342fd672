import pg from 'pg';
import { withFolder } from '../bench/folders.js';
import { startPostgres } from '../engines/postgres.js';

/** Lends a PostgreSQL server that is gone afterwards, whatever happens. */
export async function withServer<T>(use: (serverUrl: string) => Promise<T>): Promise<T> {
  return withFolder(async (folder) => {
    const server = await startPostgres({ folder });
    try {
      return await use(server.url);
    } finally {
      await server.stop();
    }
  });
}

/** A database of its own for each seed. */
export async function createDatabase(serverUrl: string, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`).finally(() => client.end());
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
