import { Projections, viewNamed } from '../../projections/engine/projections.js';
import { groupOf } from '../../projections/engine/projector.js';
import { HotFeed } from '../../projections/leaderboards/hot.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { RedisBoards } from '../../projections/sinks/redis.js';
import { typesOfView, upcast, views } from '../../projections/views.js';
import { addGauges } from '../../services/runtime/gauges.js';
import type { Frame } from '../../services/runtime/host.js';
import type { Engines } from './engines.js';
import type { Doors } from './main.js';
import { watched } from './services.js';

/** How soon a build is begun that another process asked for, and boards follow rows that another one put in place. */
const LOOK_MS = 1_000;

/** Keeps views up to date: those that were named, or all. The ratings' boards in Redis follow their rows. */
export async function projections(frame: Frame, engines: Engines): Promise<Doors> {
  const { config, metrics } = frame;
  const own = config.views.length === 0 ? views : config.views.map((name) => viewNamed(views, name));
  const [store, database, makeBus] = await Promise.all([engines.store(), engines.database(), engines.makeBus()]);
  const sink = new PostgresSink(database);
  const watch = await watched(frame);
  const hot = own.includes(leaderboardsView) ? await hotBoards(frame, engines, sink) : undefined;
  const kept = new Projections({
    views: own,
    sink,
    store,
    upcast,
    lookEveryMs: LOOK_MS,
    makeBus: (checkpoints) => watch.bus(makeBus(checkpoints), typesOfView),
    onCommitted: (committed) => {
      metrics.onCommitted(committed);
      hot?.committed(committed);
    },
    onSwapped: (view) => hot?.swapped(view),
    onBuildFailed: (view, error) => frame.onRetry(groupOf(view), error),
  });
  frame.started('projections', kept, () => kept.stop());
  await frame.need('views', () => kept.start());
  addGauges(metrics.registry, { log: store, projections: kept });
  for (const [name, consumer] of kept.consumers) {
    frame.watch(`projection.${name}`, consumer, () => store.lastPosition());
  }
  return {};
}

async function hotBoards(frame: Frame, engines: Engines, sink: PostgresSink): Promise<HotFeed> {
  const redis = await engines.redis();
  const onError = (err: unknown) => frame.log.warn({ err }, 'the hot boards fell behind');
  const hot = new HotFeed(new RedisBoards(redis), leaderboardsView, sink, onError);
  await frame.need('boards', () => hot.start());
  // A Redis that was away may have come back with nothing.
  redis.on('ready', () => hot.refresh());
  const looking = setInterval(() => hot.compare(), LOOK_MS);
  frame.started('boards', looking, async () => clearInterval(looking));
  frame.part('boards', async () => 'follow the rows');
  return hot;
}
