import type { DataSource } from 'typeorm';
import { balancesView } from '../../projections/balances/view.js';
import { Projector } from '../../projections/engine/projector.js';
import type { AnyTable } from '../../projections/engine/table.js';
import type { View } from '../../projections/engine/view.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { columnsOf, PostgresSink, upsert } from '../../projections/sinks/postgres.js';
import { upcast } from '../../projections/views.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import type { EventStore } from '../../services/kernel/index.js';
import { startPostgres } from '../engines/postgres.js';
import { withFolder } from './folders.js';
import { writeHistory } from './history.js';
import { type BenchOptions, figures, type Report, race, ratio, thousands } from './rounds.js';

const EVENTS = 1_000_000;
const BATCH_EVENTS = 10_000;
const SINGLE_EVENTS = 4_000;
const VIEWS: readonly View[] = [balancesView, leaderboardsView];

/** Events taken into balances and leaderboards a second, both at once, with every checkpoint. */
export async function project(options: BenchOptions): Promise<Report> {
  return withFolder(async (folder) => {
    const store = await LmdbEventStore.open(`${folder}/log`);
    const postgres = await startPostgres({ folder: `${folder}/postgres` });
    const db = await openDatabase(postgres.url);
    try {
      const count = await writeHistory(store, options.quick ? EVENTS / 20 : EVENTS);
      options.progress(`${thousands(count)} events written`);
      const batches = await committedBy(store, BATCH_EVENTS, count);
      const singles = await committedBy(store, 1, SINGLE_EVENTS);
      const concerned = singles.map((steps) => steps.filter(({ statements }) => statements.length > 0));
      const measured = await race(
        [
          { name: 'ours', run: () => timed(db, count, () => engine(db, store)) },
          { name: 'unnest', run: () => timed(db, count, () => bare(db, batches)) },
          { name: 'perEvent', run: () => timed(db, SINGLE_EVENTS, () => bare(db, singles)) },
          { name: 'perConcerned', run: () => timed(db, SINGLE_EVENTS, () => bare(db, concerned)) },
        ],
        options,
      );
      return {
        results: Object.fromEntries([...measured].map(([name, rounds]) => [name, figures(rounds)])),
        ratios: Object.fromEntries(
          ['perEvent', 'unnest', 'perConcerned'].map((name) => [name, ratio(measured, 'ours', name)]),
        ),
        targets: { perEvent: 40, unnest: 0.5 },
        notes: [
          `${thousands(count)} events of staked matches, in batches of ${thousands(BATCH_EVENTS)}, read from the log. unnest writes ` +
            'the same rows, folded beforehand. perEvent does so event by event, each in a transaction with its checkpoint; ' +
            'perConcerned does nothing at all for events that change no row.',
        ],
      };
    } finally {
      await db.destroy();
      await postgres.stop();
      await store.close();
    }
  });
}

async function timed(db: DataSource, events: number, work: () => Promise<void>): Promise<number> {
  const sink = new PostgresSink(db);
  for (const view of VIEWS) await sink.reset(view);
  await db.query('CHECKPOINT');
  const startedMs = performance.now();
  await work();
  return (events / (performance.now() - startedMs)) * 1000;
}

/** The engine as a rebuild runs it: both views side by side. */
async function engine(db: DataSource, store: EventStore): Promise<void> {
  const sink = new PostgresSink(db);
  const projectors = VIEWS.map((view) => new Projector(view, sink, upcast));
  for (let after = 0; ; ) {
    const page = await store.readAll({ after, limit: BATCH_EVENTS });
    const last = page.at(-1);
    if (!last) return;
    await Promise.all(projectors.map((projector) => projector.project(page)));
    after = last.position;
  }
}

/** What a commit sends to the database, ready to be sent. */
interface Step {
  readonly view: View;
  readonly to: number;
  readonly statements: readonly { readonly sql: string; readonly values: unknown[] }[];
}

/** Nothing but the statements: no log, no folding, no loading. */
async function bare(db: DataSource, lanes: readonly (readonly Step[])[]): Promise<void> {
  const run = async (steps: readonly Step[]) => {
    const [first] = steps;
    if (!first) return;
    await db.query('INSERT INTO checkpoints VALUES ($1, $2, 0)', [first.view.name, first.view.version]);
    for (const { view, to, statements } of steps) {
      const move = ['UPDATE checkpoints SET position = $2 WHERE view = $1', [view.name, to]] as const;
      if (statements.length === 0) await db.query(move[0], [...move[1]]);
      else {
        await db.transaction(async (manager) => {
          await manager.query(move[0], [...move[1]]);
          for (const { sql, values } of statements) await manager.query(sql, values);
        });
      }
    }
  };
  await Promise.all(lanes.map(run));
}

/** Lets each view take in the events in batches of this size, and keeps what it committed. */
async function committedBy(store: EventStore, size: number, count: number): Promise<Step[][]> {
  const statements = new Map<AnyTable, string>();
  const lanes = VIEWS.map((view) => {
    const steps: Step[] = [];
    const projector = new Projector(view, new MemorySink(), upcast, ({ to, changes }) => {
      const sent = [...changes].map(([table, rows]) => {
        const sql = statements.get(table) ?? upsert(table);
        statements.set(table, sql);
        return { sql, values: columnsOf(table, rows) };
      });
      steps.push({ view, to, statements: sent });
    });
    return { steps, projector };
  });
  for (let after = 0; after < count; ) {
    const page = await store.readAll({ after, limit: Math.min(BATCH_EVENTS, count - after) });
    for (let at = 0; at < page.length; at += size) {
      for (const { projector } of lanes) await projector.project(page.slice(at, at + size));
    }
    after += page.length;
  }
  return lanes.map(({ steps }) => steps);
}
