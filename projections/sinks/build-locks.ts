import type { DataSource, QueryRunner } from 'typeorm';

/** The first half of each lock's key, so that no other lock of this database has the same. */
const BUILDS = 46_000_003;

/**
 * Which views this process builds, as locks of one session: all on one connection, since a pool may be smaller than the
 * number of views, and given back by PostgreSQL when the process dies.
 */
export class BuildLocks {
  private readonly held = new Set<string>();
  private runner: QueryRunner | undefined;
  private queue: Promise<unknown> = Promise.resolve();

  constructor(private readonly db: DataSource) {}

  /** False if it is taken, by another process or by this one. */
  take(name: string): Promise<boolean> {
    return this.alone(async () => {
      if (this.held.has(name)) return false;
      const [found] = await this.ask('SELECT pg_try_advisory_lock($1, hashtext($2)) AS mine', name);
      if (found?.mine) this.held.add(name);
      await this.rest();
      return found?.mine === true;
    });
  }

  give(name: string): Promise<void> {
    return this.alone(async () => {
      this.held.delete(name);
      await this.ask('SELECT pg_advisory_unlock($1, hashtext($2))', name).catch(() => {});
      await this.rest();
    });
  }

  private async ask(sql: string, name: string): Promise<{ mine?: boolean }[]> {
    this.runner ??= this.db.createQueryRunner();
    try {
      return await this.runner.query(sql, [BUILDS, name]);
    } catch (error) {
      // A connection that broke took its locks along; the next question makes another one.
      await this.runner.release().catch(() => {});
      this.runner = undefined;
      throw error;
    }
  }

  private async rest(): Promise<void> {
    if (this.held.size > 0) return;
    await this.runner?.release();
    this.runner = undefined;
  }

  private alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.queue.then(work, work);
    this.queue = done.catch(() => {});
    return done;
  }
}
