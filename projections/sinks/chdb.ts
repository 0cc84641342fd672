import { type ClickHouseClient, createClient } from '@clickhouse/client';
import { AgonError } from '../../services/kernel/index.js';

type Connection = NonNullable<NonNullable<Parameters<typeof createClient>[0]>['connection']>;

interface Chdb {
  createChdbConnection(options: { path: string }): Connection;
}

/** By name and not by type: the package is optional, and Agon is built and runs without it. */
const load = (name: string): Promise<Chdb> => import(name);

/**
 * A client whose server is in this process: ClickHouse's own engine on a folder. A process has one folder, with as many
 * clients as it likes; each has settings of its own. A crash of the engine is a crash of the process: the arena keeps it
 * in a child.
 */
export async function openChdb(): Promise<(path: string) => ClickHouseClient> {
  try {
    const { createChdbConnection } = await load('chdb/connection');
    return (path) => createClient({ connection: createChdbConnection({ path }), log: { level: 127 } });
  } catch (error) {
    throw new AgonError(
      'ANALYTICS.NOT_INSTALLED',
      'The package chdb, ClickHouse for one process, is not installed, so there are no analytics here. Install with npm ' +
        'ci without --omit=optional (Linux with glibc, or macOS), or name a server in CLICKHOUSE_URL.',
      {},
      { cause: error },
    );
  }
}
