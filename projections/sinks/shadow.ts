import { hash } from 'node:crypto';
import { AgonError } from '../../services/kernel/index.js';
import type { Cell } from '../engine/table.js';
import type { View } from '../engine/view.js';

type Query = (sql: string, values?: unknown[]) => Promise<Record<string, Cell>[]>;

/** A view that is being built has a schema of its own: the same tables by the same names, empty at first. */
export const schemaOf = (view: View): string => `build_${view.name}`;

/** What a build keeps besides the view's tables: how far it has come, and what it had to put aside. */
const BOOKS = ['checkpoints', 'dead_letters'] as const;

/**
 * Whoever waits for a table keeps all later readers waiting as well. Shorter than the second after which PostgreSQL looks
 * for deadlocks, so that it is never a reader that is given up.
 */
const LOCK_WAIT_MS = 500;

/**
 * Makes the schema of a build, or leaves the one that an interrupted build has filled, if it was made by the same rules.
 * Tables, constraints and triggers are read from the ones that serve, so that nothing is written down twice. Indexes that
 * only queries need come at the end: made over all rows at once, they cost a fraction of what each row would pay.
 */
export async function copyOf(query: Query, view: View): Promise<void> {
  const schema = schemaOf(view);
  const statements: string[] = [];
  const indexes: string[] = [];
  for (const table of [...view.tables.map(({ name }) => name), ...BOOKS]) {
    statements.push(...(await definitionOf(query, table)));
    indexes.push(...(await indexesOf(query, table)));
  }
  // A foreign key needs the table that it points to.
  statements.sort((a, b) => Number(a.includes('FOREIGN KEY')) - Number(b.includes('FOREIGN KEY')));
  const mark = `version ${view.version}, ${hash('sha256', [...statements, ...indexes].join('\n'))}`;
  const [found] = await query(`SELECT obj_description(to_regnamespace($1), 'pg_namespace') AS mark`, [schema]);
  if (found?.mark === mark) return;
  await query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await query(`CREATE SCHEMA ${schema}`);
  await query(`COMMENT ON SCHEMA ${schema} IS '${mark}'`);
  await query(`SET LOCAL search_path TO ${schema}, public`);
  for (const statement of statements) await query(statement);
  await query('INSERT INTO checkpoints (view, version, position) VALUES ($1, $2, 0)', [view.name, view.version]);
  await query('SET LOCAL search_path TO public');
}

/** The statements that make this table again, for whatever schema comes first on the search path. */
async function definitionOf(query: Query, table: string): Promise<string[]> {
  const texts = async (sql: string) => (await query(sql, [`public.${table}`])).map(({ text }) => `${text}`);
  const columns = await texts(
    `SELECT format('%I %s %s %s %s', a.attname, format_type(a.atttypid, a.atttypmod),
         CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE ' || quote_ident(c.collname) ELSE '' END,
         CASE WHEN d.adbin IS NULL THEN '' ELSE 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) END,
         CASE WHEN a.attnotnull THEN 'NOT NULL' ELSE '' END) AS text
       FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation
       LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
       WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
  );
  const constraints = await texts(
    `SELECT format('ALTER TABLE ${table} ADD CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)) AS text
       FROM pg_constraint WHERE conrelid = $1::regclass AND contype IN ('p', 'u', 'c', 'x', 'f') ORDER BY conname`,
  );
  const triggers = await texts(
    `SELECT pg_get_triggerdef(oid) AS text FROM pg_trigger WHERE tgrelid = $1::regclass AND NOT tgisinternal ORDER BY text`,
  );
  return [
    `CREATE TABLE ${table} (${columns.join(', ')})`,
    ...constraints,
    ...triggers.map((text) => unplaced(text, table)),
  ];
}

const unplaced = (text: string, table: string) => text.replace(` ON public.${table} `, ` ON ${table} `);

/** The indexes that no constraint brings along. */
async function indexesOf(query: Query, table: string, schema = 'public'): Promise<string[]> {
  const rows = await query(
    `SELECT pg_get_indexdef(indexrelid) AS text FROM pg_index i WHERE indrelid = $1::regclass AND NOT EXISTS
       (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid) ORDER BY text`,
    [`${schema}.${table}`],
  );
  return rows.map(({ text }) => `${text}`.replace(` ON ${schema}.${table} `, ` ON ${table} `));
}

/** Gives a build the indexes that it lacks, and the planner figures of rows that it has never seen. */
export async function addIndexes(query: Query, view: View): Promise<void> {
  const schema = schemaOf(view);
  await query(`SET LOCAL search_path TO ${schema}, public`);
  for (const { name } of view.tables) {
    const there = await indexesOf(query, name, schema);
    const missing = (await indexesOf(query, name)).filter((index) => !there.includes(index));
    for (const index of missing) await query(index);
    if (missing.length > 0) await query(`ANALYZE ${name}`);
  }
  await query('SET LOCAL search_path TO public');
}

/**
 * Puts the build in the place of what serves, in the transaction of the caller: readers see the one or the other, and a
 * reader in the middle of a query finishes it on what it began with. A build that is behind would take readers back.
 */
export async function swapIn(query: Query, view: View): Promise<void> {
  const schema = schemaOf(view);
  await query(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
  const [served] = await query('SELECT position FROM public.checkpoints WHERE view = $1 FOR UPDATE', [view.name]);
  const [built] = await query(`SELECT position FROM ${schema}.checkpoints WHERE view = $1 FOR UPDATE`, [view.name]);
  if (!built || Number(built.position) < Number(served?.position ?? 0)) {
    throw new AgonError('CHECKPOINT.MOVED', `The build of ${view.name} is behind what serves.`);
  }
  await addIndexes(query, view);
  const tables = view.tables.map(({ name }) => name);
  const grants: string[] = [];
  for (const table of tables) grants.push(...(await grantsOf(query, table)));
  await query(`DROP TABLE ${tables.map((table) => `public.${table}`).join(', ')}`);
  for (const table of tables) await query(`ALTER TABLE ${schema}.${table} SET SCHEMA public`);
  for (const book of BOOKS) {
    await query(`DELETE FROM public.${book} WHERE view = $1`, [view.name]);
    await query(`INSERT INTO public.${book} SELECT * FROM ${schema}.${book}`);
  }
  for (const grant of grants) await query(grant);
  await query('DELETE FROM public.builds WHERE view = $1', [view.name]);
  await query(`DROP SCHEMA ${schema} CASCADE`);
}

/** What others were allowed to do with a table: the one that takes its place would not know it. */
async function grantsOf(query: Query, table: string): Promise<string[]> {
  const rows = await query(
    `SELECT format('GRANT %s%s ON public.%I TO %s%s', acl.privilege_type, named.columns, '${table}',
         CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END,
         CASE WHEN acl.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) AS text
       FROM pg_class c CROSS JOIN LATERAL (
         SELECT c.relacl AS acl, '' AS columns UNION ALL
         SELECT a.attacl, format(' (%I)', a.attname) FROM pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped
       ) named CROSS JOIN LATERAL aclexplode(named.acl) acl
       WHERE c.oid = $1::regclass AND acl.grantee <> c.relowner ORDER BY text`,
    [`public.${table}`],
  );
  return rows.map(({ text }) => `${text}`);
}
