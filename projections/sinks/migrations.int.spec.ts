import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OwnDatabase, ownDatabase } from '../../ops/engines/shared.contract.js';
import { columnName } from '../engine/table.js';
import { listMatches } from '../matches/query.js';
import { openDatabase } from './database.js';
import { tables } from './entities.js';

let database: OwnDatabase;
let db: DataSource;

beforeAll(async () => {
  database = await ownDatabase();
  db = await openDatabase(database.url);
});

afterAll(async () => {
  await db?.destroy();
  await database?.drop();
});

/** What TypeORM would do to make the tables what the entities say. */
const drift = async () => (await db.driver.createSchemaBuilder().log()).upQueries.map(({ query }) => query);

/** Everything in the database that a migration can change. */
const shape = async () => ({
  columns: await db.query(`SELECT table_name, column_name, data_type, is_nullable, collation_name, column_default,
    numeric_precision FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2`),
  indexes: await db.query(`SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1`),
  triggers: await db.query(`SELECT tgname, pg_get_triggerdef(oid) AS definition FROM pg_trigger
    WHERE NOT tgisinternal ORDER BY 1, 2`),
  functions: await db.query(
    `SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1`,
  ),
});

describe('the tables of the views', () => {
  it('are what the entities say, by TypeORM’s own comparison', async () => {
    expect(db.entityMetadatas.map(({ tableName }) => tableName).sort()).toEqual(tables.map(({ name }) => name).sort());
    expect(await drift()).toEqual([]);
  });

  it.each([
    ['a column that nobody described', 'ALTER TABLE turns ADD COLUMN mood text', 'ALTER TABLE turns DROP COLUMN mood'],
    ['a default', 'ALTER TABLE turns ALTER fuel SET DEFAULT 1', 'ALTER TABLE turns ALTER fuel DROP DEFAULT'],
    [
      'a value that may be missing',
      'ALTER TABLE turns ALTER fuel DROP NOT NULL',
      'ALTER TABLE turns ALTER fuel SET NOT NULL',
    ],
    ['another type', 'ALTER TABLE turns ALTER seat TYPE int8', 'ALTER TABLE turns ALTER seat TYPE int4'],
    [
      'another order of text',
      'ALTER TABLE members ALTER account_id TYPE text COLLATE "POSIX"',
      'ALTER TABLE members ALTER account_id TYPE text COLLATE "C"',
    ],
  ])('would not go unnoticed with %s', async (_what, change, back) => {
    await db.query(change);
    expect(await drift()).not.toEqual([]);
    await db.query(back);
    expect(await drift()).toEqual([]);
  });

  it('have the indexes that are described, by the same columns, and no others', async () => {
    const found: { table: string; name: string; columns: string[] }[] = await db.query(
      `SELECT t.relname AS table, i.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
       FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
       JOIN pg_attribute a ON a.attrelid = i.oid WHERE NOT x.indisprimary AND t.relnamespace = 'public'::regnamespace
       AND t.relname = ANY($1) GROUP BY 1, 2`,
      [tables.map(({ name }) => name)],
    );
    const described = tables.flatMap(({ name: table, indexes = {} }) =>
      Object.entries(indexes).map(([name, columns]) => ({ table, name, columns: columns.map(columnName) })),
    );
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    expect(found.sort(byName)).toEqual(described.sort(byName));
  });
});

describe('migrations', () => {
  it('seat the agents of matches that are there, so that readers find them before the view is built anew', async () => {
    const before = db.migrations.findIndex(({ name }) => name?.startsWith('Seats'));
    for (let left = db.migrations.length; left > before; left--) await db.undoLastMigration({ transaction: 'all' });
    await db.query(`INSERT INTO matches SELECT 'm' || i, 'g', 's', 'settled', '', '',
      '[{"agentId":"ada.a","accountId":"ada"},{"agentId":"bob.b","accountId":"bob"}]', 0, 1, 1, 1, 'PLAY', 3, 1, now(), now(), i
      FROM generate_series(1, 3) i`);
    await db.runMigrations({ transaction: 'all' });
    const { rows } = await listMatches(db, { agentId: 'bob.b' });
    expect(rows.map(({ matchId }) => matchId)).toEqual(['m3', 'm2', 'm1']);
    await db.query('TRUNCATE matches, match_seats');
  });

  it('can each be taken back and done again', async () => {
    const whole = await shape();
    const steps: (typeof whole)[] = [];
    for (let left = db.migrations.length; left > 0; left--) {
      const before = await shape();
      await db.undoLastMigration({ transaction: 'all' });
      const after = await shape();
      expect(after, `${left}`).not.toEqual(before);
      steps.push(after);
    }
    expect(steps.at(-1)?.columns.map((row: { table_name: string }) => row.table_name)).toEqual(
      expect.not.arrayContaining(['matches', 'postings']),
    );
    // Each again by itself, and each must lead to where the one after it had been taken back to.
    const all = [...db.migrations];
    for (const [i] of all.entries()) {
      db.migrations.splice(0, db.migrations.length, ...all.slice(0, i + 1));
      await db.runMigrations({ transaction: 'all' });
      expect(await shape(), all[i]?.name).toEqual(steps.at(-2 - i) ?? whole);
    }
    expect(await drift()).toEqual([]);
  });
});
