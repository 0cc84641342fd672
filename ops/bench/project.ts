import pg from 'pg';
import { balancesView } from '../../projections/balances/view.js';
import { Projector } from '../../projections/engine/projector.js';
import { BATCH_EVENTS, rebuild } from '../../projections/engine/rebuild.js';
import type { View } from '../../projections/engine/view.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { MemorySink } from '../../projections/sinks/memory.js';
import { columnsOf, insertion, PostgresSink, upsert } from '../../projections/sinks/postgres.js';
import { schemaOf } from '../../projections/sinks/shadow.js';
import { upcast } from '../../projections/views.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import type { EventStore } from '../../services/kernel/index.js';
import { withPostgres } from '../harness/folders.js';
import { type Child, startContender } from './child.js';
import { withHistory } from './history.js';
import { type BenchOptions, compare, perSecond, type Report, thousands } from './rounds.js';

const EVENTS = 1_000_000;
const SINGLE_EVENTS = 4_000;
const VIEWS: readonly View[] = [balancesView, leaderboardsView];

/**
 * Events taken into balances and leaderboards a second, both at once, with every checkpoint. All contenders fill the same
 * tables, those of a build, which get the indexes of queries when they are full.
 */
export function project(options: BenchOptions): Promise<Report> {
  return withHistory(EVENTS, options, ({ store, path, count }) =>
    withPostgres(async (url) => {
      const db = await openDatabase(url);
      const sink = new PostgresSink(db);
      const emptied = async () => {
        for (const view of VIEWS) await sink.reset(view);
        for (const view of VIEWS) await sink.abandon(view);
        await db.query('CHECKPOINT');
      };
      const bare = async (events: number, steps: readonly (readonly Step[])[], whole: boolean) => {
        await emptied();
        const sending = (view: View, lane: number) => send(sink, url, view, steps[lane] ?? [], whole);
        return perSecond(events, () => Promise.all(VIEWS.map(sending)));
      };
      const batches = await committedBy(store, BATCH_EVENTS, count);
      const singles = await committedBy(store, 1, SINGLE_EVENTS);
      const concerned = singles.map((steps) => steps.filter(({ statements }) => statements.length > 0));
      const building = startContender('builder', path, url);
      const contenders = {
        ours: async () => {
          await emptied();
          return building.round();
        },
        unnest: () => bare(count, batches, true),
        perEvent: () => bare(SINGLE_EVENTS, singles, false),
        perConcerned: () => bare(SINGLE_EVENTS, concerned, false),
      };
      try {
        return await compare(contenders, options, {
          ratios: {
            perEvent: ['ours', 'perEvent'],
            unnest: ['ours', 'unnest'],
            perConcerned: ['ours', 'perConcerned'],
          },
          targets: { perEvent: 40, unnest: 0.5 },
          notes: [noteOn(count)],
        });
      } finally {
        await building.stop();
        await db.destroy();
      }
    }),
  );
}

const noteOn = (count: number) =>
  `${thousands(count)} events of staked matches. ours rebuilds both views side by side, from reading the log to the ` +
  `swap, in batches of ${thousands(BATCH_EVENTS)}. unnest sends the same statements, indexes and swap included, with ` +
  'rows that were folded and put into words beforehand. perEvent sends the rows of each event, folded beforehand, ' +
  'in a transaction of its own with the checkpoint; perConcerned does nothing at all for events that change no row.';

/** In a process of its own, out of the memory that holds what its rivals are given: builds both views, side by side. */
export async function builder([path = '', url = '']: string[]): Promise<Child> {
  const store = await LmdbEventStore.open(path, { readOnly: true });
  const db = await openDatabase(url);
  const sink = new PostgresSink(db);
  const count = await store.lastPosition();
  const build = () => Promise.all(VIEWS.map((view) => rebuild({ view, sink, store, upcast })));
  return {
    round: () => perSecond(count, build),
    stop: async () => {
      await db.destroy();
      await store.close();
    },
  };
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
