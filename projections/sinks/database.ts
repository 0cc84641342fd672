import { DataSource } from 'typeorm';
import { AgonError } from '../../services/kernel/index.js';
import {
  Foundation1760000000000,
  Ledger1763280000000,
  LedgerByStatement1763290000000,
  Payments1763280001000,
  Ratings1763200000000,
} from './migrations.js';

/** Opens the read models' database and brings its tables up to date. */
export async function openDatabase(url: string): Promise<DataSource> {
  const db = new DataSource({
    type: 'postgres',
    url,
    migrations: [
      Foundation1760000000000,
      Ratings1763200000000,
      Ledger1763280000000,
      Payments1763280001000,
      LedgerByStatement1763290000000,
    ],
    migrationsTableName: 'migrations',
    logging: false,
    poolSize: 10,
    applicationName: 'agon',
  });
  try {
    await db.initialize();
    await db.runMigrations({ transaction: 'all' });
  } catch (error) {
    if (db.isInitialized) await db.destroy();
    const why = error instanceof Error ? error.message : String(error);
    throw new AgonError(
      'DATABASE.UNAVAILABLE',
      `The read models' database cannot be used: ${why}.`,
      {},
      { cause: error },
    );
  }
  return db;
}

/** PostgreSQL's own classes for trouble that passes: connections, resources, an operator at work. */
const PASSING = /^(08|53|57)|^E(CONN|PIPE|TIMEDOUT)/;

/** What an error of the database driver means to somebody who only wanted to read; undefined if it is none. */
export function asDatabaseError(error: unknown): AgonError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, driverError } = error as Error & { code?: string; driverError?: { code?: string } };
  const passing = PASSING.test(driverError?.code ?? code ?? '') || /Connection terminated/.test(error.message);
  if (!passing) return undefined;
  const message = `The read models are not available for the moment: ${error.message}. The log is not affected.`;
  return new AgonError('DATABASE.UNAVAILABLE', message, {}, { cause: error });
}
