import { DataSource } from 'typeorm';
import { AgonError } from '../../services/kernel/index.js';
import { Foundation1760000000000 } from './migrations.js';

/** Opens the read models' database and brings its tables up to date. */
export async function openDatabase(url: string): Promise<DataSource> {
  const db = new DataSource({
    type: 'postgres',
    url,
    migrations: [Foundation1760000000000],
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
