import { execPath } from 'node:process';
import pg from 'pg';
import { balancesView } from '../../projections/balances/view.js';
import { Projector } from '../../projections/engine/projector.js';
import { BATCH_EVENTS } from '../../projections/engine/rebuild.js';
import type { View } from '../../projections/engine/view.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { columnsOf, insertion, PostgresSink, upsert } from '../../projections/sinks/postgres.js';
import { schemaOf } from '../../projections/sinks/shadow.js';
import { upcast } from '../../projections/views.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import type { EventStore } from '../../services/kernel/index.js';
import { compiled, nodeFlags } from '../../services/runtime/package.js';
import { startPostgres } from '../engines/postgres.js';
import { startChild } from './child.js';
import { withFolder } from './folders.js';
import { writeHistory } from './history.js';
import { type BenchOptions, figures, type Report, race, ratio, thousands } from './rounds.js';

const EVENTS = 1_000_000;
const SINGLE_EVENTS = 4_000;
export const VIEWS: readonly View[] = [balancesView, leaderboardsView];

/**
 * Events taken into balances and leaderboards a second, both at once, with every checkpoint. All contenders fill the same
 * tables, those of a build, which get the indexes of queries when they are full.
 */
export async function project(options: BenchOptions): Promise<Report> {
  return withFolder(async (folder) => {
    const store = await LmdbEventStore.open(`${folder}/log`);
    const postgres = await startPostgres({ folder: `${folder}/postgres` });
    const db = await openDatabase(postgres.url);
    const sink = new PostgresSink(db);
    const emptied = async () => {
      for (const view of VIEWS) await sink.reset(view);
      for (const view of VIEWS) await sink.abandon(view);
      await db.query('CHECKPOINT');
    };
    const timed = async (events: number, work: () => Promise<unknown>): Promise<number> => {
      await emptied();
      const startedMs = performance.now();
      await work();
      return (events / (performance.now() - startedMs)) * 1000;
    };
    const bare = (steps: readonly (readonly Step[])[], whole: boolean) =>
      Promise.all(VIEWS.map((view, lane) => send(sink, postgres.url, view, steps[lane] ?? [], whole)));
    try {
      const count = await writeHistory(store, options.quick ? EVENTS / 20 : EVENTS);
      options.progress(`${thousands(count)} events written`);
      const batches = await committedBy(store, BATCH_EVENTS, count);
      const singles = await committedBy(store, 1, SINGLE_EVENTS);
      const concerned = singles.map((steps) => steps.filter(({ statements }) => statements.length > 0));
      const file = compiled(import.meta.url, './rebuilder.js');
      const builder = startChild(execPath, [...nodeFlags, file, `${folder}/log`, postgres.url]);
      const ours = async () => {
        await emptied();
        return builder.round('build');
      };
      const measured = await race(
        [
          { name: 'ours', run: ours },
          { name: 'unnest', run: () => timed(count, () => bare(batches, true)) },
          { name: 'perEvent', run: () => timed(SINGLE_EVENTS, () => bare(singles, false)) },
          { name: 'perConcerned', run: () => timed(SINGLE_EVENTS, () => bare(concerned, false)) },
        ],
        options,
      ).finally(() => builder.stop());
      return {
        results: Object.fromEntries([...measured].map(([name, rounds]) => [name, figures(rounds)])),
        ratios: Object.fromEntries(
          ['perEvent', 'unnest', 'perConcerned'].map((name) => [name, ratio(measured, 'ours', name)]),
        ),
        targets: { perEvent: 40, unnest: 0.5 },
        notes: [
          `${thousands(count)} events of staked matches. ours rebuilds both views side by side, from reading the log to the ` +
            `swap, in batches of ${thousands(BATCH_EVENTS)}. unnest sends the same statements, indexes and swap included, with ` +
            'rows that were folded and put into words beforehand. perEvent sends the rows of each event, folded beforehand, ' +
            'in a transaction of its own with the checkpoint; perConcerned does nothing at all for events that change no row.',
        ],
      };
    } finally {
      await db.destroy();
      await postgres.stop();
      await store.close();
    }
  });
}

/** What a commit sends to the database, ready to be sent. */
interface Step {
  readonly to: number;
  readonly statements: readonly { readonly sql: string; readonly values: unknown[] }[];
}

/** Nothing but the statements, on a connection of their own: no log, no folding, no loading, no words to find. */
async function send(
  sink: PostgresSink,
  url: string,
  view: View,
  steps: readonly Step[],
  whole: boolean,
): Promise<void> {
  await sink.beside(view);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`SET search_path TO ${schemaOf(view)}, public`);
    const move = 'UPDATE checkpoints SET position = $2 WHERE view = $1';
    for (const { to, statements } of steps) {
      if (statements.length > 0) await client.query('BEGIN');
      await client.query(move, [view.name, to]);
      for (const { sql, values } of statements) await client.query(sql, values);
      if (statements.length > 0) await client.query('COMMIT');
    }
  } finally {
    await client.end();
  }
  if (whole) await sink.polish(view);
  if (whole) await sink.swap(view);
}

/** Lets each view take in the events in batches of this size, and keeps what it committed. */
async function committedBy(store: EventStore, size: number, count: number): Promise<Step[][]> {
  const lanes = VIEWS.map((view) => {
    const steps: Step[] = [];
    const projector = new Projector(view, new MemorySink(), upcast, ({ to, changes, added }) => {
      const statements = [
        ...[...added].map(([table, rows]) => ({ sql: insertion(table), values: columnsOf(table, rows) })),
        ...[...changes].map(([table, rows]) => ({ sql: upsert(table), values: columnsOf(table, rows) })),
      ];
      steps.push({ to, statements });
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
