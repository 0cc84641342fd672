import { dirname } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import type { Pool, QueryResultRow } from 'pg';
import type { Checkpoints, DeadLetter } from '../../kernel/index.js';
import { assertSpace, committed } from '../store/store-error.js';

/** Checkpoints in memory, for tests. */
export class MemoryCheckpoints implements Checkpoints {
  private readonly positions = new Map<string, number>();
  private readonly dead = new Map<string, DeadLetter>();

  async load(group: string): Promise<number> {
    return this.positions.get(group) ?? 0;
  }

  async save(group: string, position: number): Promise<void> {
    this.positions.set(group, position);
  }

  async reset(group: string): Promise<void> {
    this.positions.delete(group);
  }

  async bury(deadLetter: DeadLetter): Promise<void> {
    this.dead.set(`${deadLetter.group} ${deadLetter.eventId}`, deadLetter);
  }

  async unbury(group: string, eventId: string): Promise<void> {
    this.dead.delete(`${group} ${eventId}`);
  }

  async deadLetters(group?: string): Promise<readonly DeadLetter[]> {
    return [...this.dead.values()].filter((each) => group === undefined || each.group === group);
  }
}

type Entry = number | DeadLetter;

/** Checkpoints in the data folder. A save need not be flushed: losing the newest only means a redelivery. */
export class LmdbCheckpoints implements Checkpoints {
  private readonly env: RootDatabase<Entry, string[]>;

  constructor(private readonly path: string) {
    // Batching by turn makes a second promise for each commit, which nobody could catch on a full disk.
    this.env = open<Entry, string[]>({
      path,
      noSubdir: true,
      encoding: 'json',
      cache: false,
      eventTurnBatching: false,
    });
  }

  async load(group: string): Promise<number> {
    return (this.env.get(['position', group]) as number | undefined) ?? 0;
  }

  async save(group: string, position: number): Promise<void> {
    assertSpace(dirname(this.path), 0);
    await committed(this.env.put(['position', group], position), dirname(this.path));
  }

  async reset(group: string): Promise<void> {
    await committed(this.env.remove(['position', group]), dirname(this.path));
  }

  async bury(deadLetter: DeadLetter): Promise<void> {
    assertSpace(dirname(this.path), 0);
    const { group, eventId } = deadLetter;
    await committed(this.env.put(['letter', group, eventId], deadLetter), dirname(this.path));
    await committed(this.env.flushed, dirname(this.path));
  }

  async unbury(group: string, eventId: string): Promise<void> {
    await committed(this.env.remove(['letter', group, eventId]), dirname(this.path));
  }

  async deadLetters(group?: string): Promise<readonly DeadLetter[]> {
    const start = group === undefined ? ['letter'] : ['letter', group];
    const range = this.env.getRange({ start, end: [...start, '\uffff'] });
    return [...range].map((entry) => entry.value as DeadLetter);
  }

  async close(): Promise<void> {
    await this.env.close();
  }
}

/** Checkpoints in PostgreSQL, for groups whose members are on different machines. They live in a schema of their own. */
export class PostgresCheckpoints implements Checkpoints {
  private prepared: Promise<unknown> | undefined;

  constructor(private readonly pool: Pool) {
    // A database that restarts drops connections that nobody uses: the next question opens another.
    pool.on('error', () => {});
  }

  async load(group: string): Promise<number> {
    const [row] = await this.ask<{ position: string }>('SELECT position FROM bus.checkpoints WHERE name = $1', [group]);
    return Number(row?.position ?? 0);
  }

  async save(group: string, position: number): Promise<void> {
    const update = 'ON CONFLICT (name) DO UPDATE SET position = excluded.position';
    await this.ask(`INSERT INTO bus.checkpoints VALUES ($1, $2) ${update}`, [group, position]);
  }

  async reset(group: string): Promise<void> {
    await this.ask('DELETE FROM bus.checkpoints WHERE name = $1', [group]);
  }

  async bury(deadLetter: DeadLetter): Promise<void> {
    const { group, eventId } = deadLetter;
    const update = 'ON CONFLICT (name, event_id) DO UPDATE SET letter = excluded.letter';
    await this.ask(`INSERT INTO bus.letters VALUES ($1, $2, $3) ${update}`, [
      group,
      eventId,
      JSON.stringify(deadLetter),
    ]);
  }

  async unbury(group: string, eventId: string): Promise<void> {
    await this.ask('DELETE FROM bus.letters WHERE name = $1 AND event_id = $2', [group, eventId]);
  }

  async deadLetters(group?: string): Promise<readonly DeadLetter[]> {
    const sql = 'SELECT letter FROM bus.letters WHERE $1::text IS NULL OR name = $1 ORDER BY name, event_id';
    return (await this.ask<{ letter: DeadLetter }>(sql, [group ?? null])).map(({ letter }) => letter);
  }

  private async ask<Row extends QueryResultRow>(sql: string, values: unknown[]): Promise<Row[]> {
    this.prepared ??= this.pool.query(TABLES);
    try {
      await this.prepared;
    } catch (error) {
      this.prepared = undefined;
      throw error;
    }
    return (await this.pool.query<Row>(sql, values)).rows;
  }
}

/** Statements that are sent together are one transaction. The lock is for processes that start in the same moment. */
const TABLES = `
SELECT pg_advisory_xact_lock(4600000001);
CREATE SCHEMA IF NOT EXISTS bus;
CREATE TABLE IF NOT EXISTS bus.checkpoints (name text PRIMARY KEY, position bigint NOT NULL);
CREATE TABLE IF NOT EXISTS bus.letters (name text, event_id text, letter jsonb NOT NULL, PRIMARY KEY (name, event_id));`;
