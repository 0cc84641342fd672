import { type ClickHouseClient, ClickHouseError, createClient } from '@clickhouse/client';
import { AgonError, type RecordedEvent } from '../../services/kernel/index.js';
import { rowOf } from '../analytics/row.js';
import { dataTables, migrations } from '../analytics/schema.js';

const PROGRESS = 'analytics';
export const DATABASE = 'agon';

/** How numbers leave ClickHouse: whole ones beyond 32 bits and amounts as text, since JavaScript would round them. */
const exact = {
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_decimals: 1,
} as const;

/** A client for a server, or for whatever answers as one. */
export const clickHouseAt = (url: string): ClickHouseClient =>
  createClient({ url, request_timeout: 120_000, keep_alive: { enabled: true }, log: { level: 127 } });

/** Events as ClickHouse reads them: a line of JSON each. */
export const encode = (events: readonly RecordedEvent[]): string =>
  events.map((event) => JSON.stringify(rowOf(event))).join('\n');

/**
 * Events in ClickHouse, a server or the embedded engine: the statements are the same. Nothing here depends on order or
 * on how often an event comes: a position has one row in each table, and a row that is sent again replaces itself.
 */
export class ClickHouseSink {
  constructor(
    private readonly client: ClickHouseClient,
    readonly database = DATABASE,
  ) {}

  /** Brings the tables to what this version needs; `retentionDays` 0 keeps everything. */
  async migrate(retentionDays = 0): Promise<void> {
    const { database } = this;
    await this.execute(`CREATE DATABASE IF NOT EXISTS ${database}`);
    await this.execute(
      `CREATE TABLE IF NOT EXISTS ${database}.migrations (version UInt32) ENGINE = ReplacingMergeTree ORDER BY version`,
    );
    const done = new Set(
      (await this.query<{ version: number }>('SELECT version FROM migrations')).map((r) => r.version),
    );
    const newest = migrations.at(-1)?.version ?? 0;
    const [ahead] = [...done].filter((version) => version > newest);
    if (ahead !== undefined) {
      throw new AgonError(
        'ANALYTICS.NEWER_SCHEMA',
        `The analytics tables have version ${ahead}; this Agon knows ${newest}. Use a newer one, or "agon analytics rebuild".`,
      );
    }
    for (const { version, statements } of migrations.filter((migration) => !done.has(migration.version))) {
      for (const statement of statements(database)) await this.execute(statement);
      await this.execute(`INSERT INTO ${database}.migrations VALUES (${version})`);
    }
    await this.retain(retentionDays);
  }

  /** The last position up to which every event has its rows. */
  async checkpoint(): Promise<number> {
    const sql = `SELECT max(position) AS position FROM progress WHERE name = '${PROGRESS}'`;
    const [row] = await this.query<{ position: string }>(sql);
    return Number(row?.position ?? 0);
  }

  async insert(events: readonly RecordedEvent[]): Promise<void> {
    if (events.length > 0) await this.write(encode(events));
  }

  /** One statement, and with it the rows of every chart. A crash in the middle is mended by sending the rows again. */
  async write(rows: string): Promise<void> {
    await this.execute(`INSERT INTO ${this.database}.events FORMAT JSONEachRow\n${rows}`);
  }

  /** Only ever after the insert. */
  async advance(position: number): Promise<void> {
    await this.execute(`INSERT INTO ${this.database}.progress VALUES ('${PROGRESS}', ${position})`);
  }

  /** Forgets all that came from the log. The checkpoint goes first: what is left would be sent again, not missed. */
  async reset(): Promise<void> {
    for (const table of ['progress', ...dataTables]) await this.execute(`TRUNCATE TABLE ${this.database}.${table}`);
  }

  async query<Row>(sql: string, params: Record<string, unknown> = {}): Promise<Row[]> {
    try {
      const result = await this.client.query({
        query: qualified(sql, this.database),
        format: 'JSONEachRow',
        query_params: params,
        clickhouse_settings: exact,
      });
      return await result.json<Row>();
    } catch (error) {
      throw asAnalyticsError(error);
    }
  }

  /** The rows of every table as one hash each, whatever their order and however often they were sent. */
  async fingerprints(): Promise<Record<string, string>> {
    const hashes: Record<string, string> = {};
    for (const table of dataTables) {
      const sql = `SELECT concat(toString(count()), ':', hex(sum(sipHash64(*)))) AS hash FROM ${table} FINAL`;
      const [row] = await this.query<{ hash: string }>(sql);
      hashes[table] = row?.hash ?? '';
    }
    return hashes;
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  private async retain(days: number): Promise<void> {
    for (const table of dataTables) {
      const [row] = await this.query<{ text: string }>(
        'SELECT create_table_query AS text FROM system.tables WHERE database = {database:String} AND name = {table:String}',
        { database: this.database, table },
      );
      const kept = / TTL toDateTime\(time\) \+ toIntervalDay\((\d+)\)/.exec(row?.text ?? '')?.[1] ?? '0';
      if (Number(kept) === days) continue;
      const change = days === 0 ? 'REMOVE TTL' : `MODIFY TTL toDateTime(time) + toIntervalDay(${days})`;
      await this.execute(`ALTER TABLE ${this.database}.${table} ${change}`);
    }
  }

  /** A statement that answers nothing. */
  async execute(query: string): Promise<void> {
    try {
      await this.client.command({ query });
    } catch (error) {
      throw asAnalyticsError(error);
    }
  }
}

const known = new RegExp(`\\b(FROM|JOIN) (?=(?:${[...dataTables, 'progress', 'migrations'].join('|')})\\b)`, 'g');

/** Puts the database before our own tables: the embedded engine has no default database of ours. */
const qualified = (sql: string, database: string): string => sql.replace(known, `$1 ${database}.`);

/** What ClickHouse said, with its own code; or that it said nothing. */
export function asAnalyticsError(error: unknown): AgonError {
  if (error instanceof AgonError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const { code, type } = error as { code?: string; type?: string };
  if (error instanceof ClickHouseError || (type !== undefined && /^\d+$/.test(code ?? ''))) {
    const details = { clickhouseCode: Number(code), clickhouseType: type };
    return new AgonError('ANALYTICS.REFUSED', `ClickHouse refused it: ${message.trim()}`, details, { cause: error });
  }
  const why = message || code || 'no answer';
  return new AgonError('ANALYTICS.UNAVAILABLE', `ClickHouse does not answer: ${why}.`, {}, { cause: error });
}
