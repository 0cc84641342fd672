import { identitiesFrom } from '../../gateway/auth/identities.js';
import { SharedLive, tellWaiting } from '../../gateway/live/shared.js';
import { watchGrpc } from '../../gateway/observe.js';
import { gatewayPorts, tokensOf } from '../../gateway/part.js';
import { type Play, startPlay } from '../../gateway/play/part.js';
import { RedisBoards } from '../../projections/sinks/redis.js';
import type { Serving } from '../../proto/serve.js';
import { Cells, keyIn } from '../../sandbox-runner/index.js';
import { FileArtifacts } from '../../services/adapters/artifacts.js';
import { MemoryCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { RedisLimits } from '../../services/adapters/limits/redis.js';
import { type Bus, type EventStore, randomIds } from '../../services/kernel/index.js';
import { paymentsFrom } from '../../services/payments/part.js';
import { DataFolder } from '../../services/runtime/data-folder.js';
import { addGauges } from '../../services/runtime/gauges.js';
import type { Frame } from '../../services/runtime/host.js';
import { queueOf, tendDoor } from '../../services/runtime/leader.js';
import type { Engines } from './engines.js';
import { HOUSE_ACCOUNTS } from './ladder.js';
import type { Doors } from './main.js';
import { serviceParts } from './services.js';

const PLAY_PORT = 4602;

/** The table where agents from outside meet each other and those that the arena runs, and the door to it. */
export async function play(frame: Frame, engines: Engines): Promise<Doors> {
  const [parts, database, redis] = await Promise.all([
    serviceParts(frame, engines),
    engines.database(),
    engines.redis(),
  ]);
  const { store, load, clock, execute, watch, onRetry } = parts;
  const { log, metrics } = frame;
  const config = { ...parts.config, playPort: parts.config.playPort ?? PLAY_PORT };
  const folder = DataFolder.beside(config.dataDir);
  const cells = new Cells({ size: config.cells });
  frame.started('cells', cells, () => cells.close({ kill: true }));
  const onInternalError = (err: unknown) => log.error({ err }, 'internal error');
  const alone = new MemoryLimits(Date.now);
  const limits = new RedisLimits(redis, alone, (err) => log.warn({ err }, 'limits hold for this process alone'));
  const live = new SharedLive(redis);
  const artifacts = new FileArtifacts(folder.paths.artifacts);
  const url = () => config.publicUrl ?? `http://${config.host}:${config.port}`;
  const { provider: paid } = await paymentsFrom(config, { clock, url });
  const provider = metrics.provider(paid);
  const same = { config, store, load, database, artifacts, metrics: metrics.registry, clock, ids: randomIds, provider };
  const identities = identitiesFrom({
    config,
    paths: folder.paths,
    load,
    database,
    limits,
    clock,
    ids: randomIds,
    onInternalError,
    houseAccounts: HOUSE_ACCOUNTS,
    url,
    execute,
  });
  const ports = {
    ...gatewayPorts({ ...same, boards: new RedisBoards(redis), limits, live, cells }),
    identities,
    onInternalError,
    actorOf: tokensOf(config, folder).actorOf,
    limits: metrics.limits(limits),
  };
  const work = await queueOf(frame, parts, 'table');
  const desk = {
    store,
    load,
    artifacts,
    queue: work.queue,
    live,
    clock,
    ids: randomIds,
    leaseMs: config.leaseMs,
    execute,
  };
  const table = {
    config,
    desk,
    ports,
    cells,
    key: keyIn(folder.paths.tableKey),
    watched: metrics.pool,
    interceptors: [watchGrpc({ ids: randomIds, observe: watch.onSeen })],
    onPlayed: ({ game, outcome }: { game: string; outcome: { reason: string } }) =>
      metrics.matches.inc({ game, reason: outcome.reason }),
    say: (text: string, matchId: string) => log.debug({ matchId }, text),
  };
  let playing: Play | undefined;
  addGauges(metrics.registry, { cells, cellsMax: config.cells, agentsConnected: () => playing?.connected() ?? 0 });
  const open = async (): Promise<Serving> => {
    const bus = await fromNowOn(store, onRetry);
    const started = await startPlay({ ...table, bus });
    playing = started;
    started.runner.done.catch(frame.giveUp);
    frame.watch('play.revocations', started.revocations, () => store.lastPosition());
    const close = async () => {
      // Without its door nobody can make another move: what is under way is handed back.
      await started.runner.drain(0);
      await bus.close();
      playing = undefined;
    };
    try {
      const door = await started.open();
      const quiet = tellWaiting(redis, door.waiting);
      return {
        address: door.address,
        close: async () => {
          quiet();
          await door.close();
          await close();
        },
      };
    } catch (error) {
      await close();
      throw error;
    }
  };
  return { play: await tendDoor(frame, 'door for agents', work, open) };
}

/** Whoever has a door hears of keys that are revoked from now on; what was revoked before does not come in. */
async function fromNowOn(store: EventStore, onRetry: (group: string, error: unknown) => void): Promise<Bus> {
  const last = await store.lastPosition();
  const checkpoints = new MemoryCheckpoints();
  await checkpoints.save('play.revocations', last);
  return new EmbeddedBus(store, checkpoints, onRetry);
}
