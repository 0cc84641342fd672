import { DataSource } from 'typeorm';
import { AgonError, isAgonError } from '../../services/kernel/index.js';
import { entities } from './entities.js';
import { migrations } from './migrations.js';

const POOL = 10;
/** Next to the one of the bus's own tables. */
const MIGRATION_LOCK = 4_600_000_002;

export interface DatabaseOptions {
  /** Connections at most; two at least, since whoever migrates holds the lock with one and works with another. */
  readonly pool?: number;
}

/**
 * Opens the read models' database and brings its tables up to date. Of several processes that start in the same moment
 * one does that, and the others find it done.
 */
export async function openDatabase(url: string, { pool = POOL }: DatabaseOptions = {}): Promise<DataSource> {
  const db = new DataSource({
    type: 'postgres',
    url,
    entities: [...entities],
    migrations: [...migrations],
    migrationsTableName: 'migrations',
    logging: false,
    poolSize: Math.max(2, pool),
    applicationName: 'agon',
  });
  try {
    await db.initialize();
    await alone(db, () => db.runMigrations({ transaction: 'all' }));
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

/** Longer than any answer takes that somebody waits for. */
const STATEMENT_MS = 15_000;

/**
 * The same database for those who answer callers: no statement of theirs goes on for ever, however it was asked for.
 * Connections of its own, because those who build views have statements that may.
 */
export async function openReads(
  url: string,
  { pool = POOL, statementMs = STATEMENT_MS }: DatabaseOptions & { readonly statementMs?: number } = {},
): Promise<DataSource> {
  const db = new DataSource({
    type: 'postgres',
    url,
    logging: false,
    poolSize: pool,
    applicationName: 'agon-reads',
    extra: { statement_timeout: statementMs },
  });
  return db.initialize();
}

/** The lock belongs to the connection: a process that dies gives it back. */
async function alone(db: DataSource, work: () => Promise<unknown>): Promise<void> {
  const holder = db.createQueryRunner();
  try {
    await holder.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await work();
    await holder.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]);
  } finally {
    await holder.release();
  }
}

/** PostgreSQL's own classes for trouble that passes: connections, resources, an operator at work. */
const PASSING = /^(08|53|57)|^E(CONN|PIPE|TIMEDOUT)/;

/** What an error of the database driver means to somebody who only wanted to read; undefined if it is none. */
export function asDatabaseError(error: unknown): AgonError | undefined {
  if (!(error instanceof Error)) return undefined;
  const thrown = isAgonError(error, 'START.FAILED') ? error.cause : error;
  const { code, driverError } = thrown as Error & { code?: string; driverError?: { code?: string } };
  const passing = PASSING.test(driverError?.code ?? code ?? '') || /Connection terminated/.test(error.message);
  if (!passing) return undefined;
  const message = `The read models are not available for the moment: ${error.message}. The log is not affected.`;
  return new AgonError('DATABASE.UNAVAILABLE', message, {}, { cause: error });
}
