import type { Rows } from '../services/runtime/engines.js';
import { ages, keptFor } from '../services/runtime/gauges.js';
import type { Host } from '../services/runtime/host.js';
import { bounded } from '../services/runtime/metrics.js';
import { definePart } from '../services/runtime/part.js';
import { repeat } from '../services/runtime/repeat.js';
import { ledgerSums, trialBalance } from './balances/query.js';
import { balancesView } from './balances/view.js';
import { type ProjectionStatus, Projections, viewNamed } from './engine/projections.js';
import { groupOf } from './engine/projector.js';
import { HotFeed } from './leaderboards/hot.js';
import { leaderboardsView } from './leaderboards/view.js';
import { PostgresSink } from './sinks/postgres.js';
import { typesOfView, upcast, views } from './views.js';

/** How soon a build is begun that another process asked for, and boards follow rows that another one put in place. */
const LOOK_MS = 1_000;
/** The sums read every balance there is; each commit is checked by the database itself, whoever scrapes. */
const LEDGER_MS = 60_000;

/** Keeps views up to date: those that were named, or all. The ratings' boards follow their rows. */
export const projections = definePart({
  name: 'projections',
  needs: {},
  start: async (_needs, host) => {
    const { config, engines, metrics, onRetry } = host;
    const own = config.views.length === 0 ? views : config.views.map((name) => viewNamed(views, name));
    const [store, database, makeBus, rows, telemetry] = await Promise.all([
      engines.log(),
      engines.database(),
      engines.bus(),
      engines.rows(),
      host.telemetry(),
    ]);
    const sink = new PostgresSink(database);
    const hot = own.includes(leaderboardsView) ? await startBoards(host, sink, rows) : undefined;
    const value = new Projections({
      views: own,
      sink,
      store,
      upcast,
      lookEveryMs: LOOK_MS,
      makeBus: (checkpoints) => telemetry.bus(makeBus(checkpoints), typesOfView),
      onCommitted: (committed) => {
        rows.changed(committed.view.name);
        metrics.onCommitted(committed);
        hot?.feed.committed(committed);
      },
      onSwapped: (view) => {
        rows.changed(view.name);
        hot?.feed.swapped(view);
      },
      onBuildFailed: (view, error) => onRetry(groupOf(view), error),
    });
    await value.start();
    addGauges(host, value);
    if (own.includes(balancesView)) addLedgerGauge(host);
    for (const [name, consumer] of value.consumers) host.follow(`projection.${name}`, consumer);
    const stop = async () => {
      await value.stop();
      await hot?.stop();
    };
    return { value, stop };
  },
});

async function startBoards({ engines, log }: Host, sink: PostgresSink, rows: Rows) {
  const onError = (err: unknown) => log.warn({ err }, 'the hot boards fell behind');
  const onMoved = () => rows.changed(leaderboardsView.name);
  const feed = new HotFeed(await engines.boards(), leaderboardsView, sink, onError, onMoved);
  await feed.start();
  const look = async () => {
    feed.compare();
    await feed.settled();
  };
  const looking = repeat(LOOK_MS, look, onError);
  return { feed, stop: () => looking.stop() };
}

function addGauges({ metrics, engines }: Host, projections: Pick<Projections, 'list'>): void {
  const figures = (name: string, help: string, pick: (status: ProjectionStatus) => number) =>
    metrics.gauges(name, help, 'view', async () => (await projections.list()).map((each) => [each.view, pick(each)]));
  const lag = 'Positions of the log that the rows that serve are behind.';
  figures('agon_projection_lag_events', lag, ({ lagEvents }) => lagEvents);
  const letters = 'Events that a view has put aside.';
  figures('agon_projection_dead_letters', letters, ({ deadLetters }) => deadLetters);
  const build = 'How far a rebuild is; 0 without one.';
  figures('agon_projection_build_position', build, (each) => each.build?.position ?? 0);
  const age = 'How old the first event is that is not in the rows that serve.';
  metrics.gauges('agon_projection_lag_seconds', age, 'view', async () => {
    const status = await projections.list();
    return ages(
      await engines.log(),
      status.map(({ view, position }) => [view, position]),
    );
  });
}

function addLedgerGauge({ metrics, engines }: Host): void {
  const currency = bounded(32);
  const sums = keptFor(LEDGER_MS, async () => ledgerSums(await trialBalance(await engines.database())));
  const help = 'What all accounts add up to: anything but 0 is a fault.';
  metrics.gauges('agon_ledger_sum_cents', help, 'currency', async () => {
    return Object.entries(await sums()).map(([name, sum]) => [currency(name), Number(sum)]);
  });
}
