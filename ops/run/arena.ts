import 'reflect-metadata';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandBus } from '@nestjs/cqrs';
import type { DataSource } from 'typeorm';
import { identitiesFrom } from '../../gateway/auth/identities.js';
import type { OpenDoor } from '../../gateway/eventstore/endpoint.js';
import { serveRunners } from '../../gateway/grpc/server.js';
import { createGateway, listen } from '../../gateway/http.js';
import { LiveMatches } from '../../gateway/live/matches.js';
import { watchGrpc } from '../../gateway/observe.js';
import { gatewayPorts, tokensOf } from '../../gateway/part.js';
import { startPlay } from '../../gateway/play/part.js';
import type { GatewayPorts, PartStatus } from '../../gateway/ports.js';
import { courierPorts, followWebhooks, webhookPort } from '../../gateway/webhooks/dispatcher.js';
import { EmbeddedAnalytics } from '../../projections/analytics/service.js';
import { Projections } from '../../projections/engine/projections.js';
import { groupOf } from '../../projections/engine/projector.js';
import type { View } from '../../projections/engine/view.js';
import { HotFeed } from '../../projections/leaderboards/hot.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { openDatabase, openReads } from '../../projections/sinks/database.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { typesOfView, upcast, views } from '../../projections/views.js';
import { Cells, Egress, keyIn, readPolicy, startRunner } from '../../sandbox-runner/index.js';
import { FileArtifacts } from '../../services/adapters/artifacts.js';
import { LmdbCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { PolicyLetters } from '../../services/adapters/bus/dead-letters.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { WorkQueue } from '../../services/arena/index.js';
import { followWork, localArena } from '../../services/arena/part.js';
import { contexts } from '../../services/index.js';
import {
  type Artifacts,
  type Clock,
  type Command,
  type Consumer,
  createHandle,
  type EventStore,
  Folds,
  type Handled,
  type Ids,
  randomIds,
  systemClock,
} from '../../services/kernel/index.js';
import { followPayments, paymentsFrom, type SandboxChoice } from '../../services/payments/part.js';
import { claimIdsOf, clockOf } from '../../services/runtime/clock.js';
import { DataFolder } from '../../services/runtime/data-folder.js';
import { followExpiry, followWaiting } from '../../services/runtime/due.js';
import { addGauges } from '../../services/runtime/gauges.js';
import { createLog } from '../../services/runtime/logging.js';
import { Metrics } from '../../services/runtime/metrics.js';
import { watchFrom } from '../../services/runtime/observe.js';
import { groupOfPolicy, runPolicy } from '../../services/runtime/policies.js';
import type { Config } from '../../services/runtime/settings.js';
import { statusOf, Trouble } from '../../services/runtime/status.js';
import { startPostgres } from '../engines/postgres.js';
import type { Sandbox } from '../stripe-sandbox/server.js';
import { contentFrom } from './content.js';
import { HOUSE_ACCOUNTS } from './ladder.js';
import { logName, openLog } from './log.js';
import { sharedFrom } from './shared.js';

const GRACE_MS = 2_000;
const VISIBLE_MS = 2_000;

export interface Arena {
  readonly config: Config;
  readonly store: EventStore;
  readonly database: DataSource;
  /** The same, as those see it who answer callers. */
  readonly reads: DataSource;
  readonly artifacts: Artifacts;
  readonly clock: Clock;
  readonly ids: Ids;
  execute(command: Command): Promise<Handled>;
  status(): Promise<readonly PartStatus[]>;
  /** Resolves when everything that reacts to events has seen all of them, and nothing new came of it. */
  settled(): Promise<void>;
  /** Opens the doors; resolves with the address. */
  listen(): Promise<string>;
  /** Who takes real money here, in words. */
  readonly payments: string;
  /** The stand-in for Stripe, if it was asked for. */
  readonly sandbox: Sandbox | undefined;
  /** host:port of the door for runners, once it is open. */
  grpcAddress(): string | undefined;
  /** How EventStoreDB's clients reach the log, once that door is open. */
  eventstoreUrl(): string | undefined;
  /** host:port of the door for agents that play from outside, once it is open. */
  playAddress(): string | undefined;
  /** Where ClickHouse answers, once it does. */
  analyticsAddress(): Promise<string | undefined>;
  stop(): Promise<void>;
}

export interface ArenaOptions {
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** Payments by the stand-in for Stripe. */
  readonly sandbox?: SandboxChoice;
  /** Called with the name of each part as it comes up. */
  readonly onStep?: (step: string) => void;
}

/**
 * Puts the embedded arena together: one process, with PostgreSQL and the sandbox cells as its children. This is the
 * composition root: the only place that knows which adapter stands behind which port.
 */
export async function startArena(config: Config, options: ArenaOptions = {}): Promise<Arena> {
  const { clock = clockOf(config), ids = randomIds, onStep = () => {} } = options;
  const log = createLog({ level: config.logLevel });
  const running: { name: string; stop: () => Promise<unknown> }[] = [];
  const started = <T>(name: string, part: T, stop: () => Promise<unknown>): T => {
    running.push({ name, stop });
    return part;
  };
  /** In reverse order of starting; a part that fails to stop does not keep the others from it. */
  const stop = async () => {
    for (const part of running.splice(0).reverse()) await part.stop().catch(() => {});
  };

  try {
    onStep('data folder');
    const folder = DataFolder.take(config.dataDir);
    started('lock', folder, async () => folder.release());

    onStep('event log');
    const store = await openLog(config);
    folder.derivesFrom(logName(config));
    started('log', store, () => store.close());

    onStep('read models');
    const url = config.databaseUrl?.reveal() ?? (await ownPostgres(folder, started));
    const database = await openDatabase(url, { pool: config.databasePool });
    started('database', database, () => database.destroy());
    const reads = await openReads(url, { pool: config.databasePool });
    started('reads', reads, () => reads.destroy());

    const sink = new PostgresSink(database);
    const metrics = new Metrics();
    const watch = await watchFrom(config, metrics, log, clock);
    started('watch', watch, () => watch.close());
    const { boards, limits } = await sharedFrom(config, config.now ? systemClock : clock, started, log);
    const hot = new HotFeed(boards, leaderboardsView, sink, (err) => log.error({ err }, 'the hot boards fell behind'));

    onStep('write side');
    const consumers = new Map<string, Consumer>();
    const trouble = new Trouble(consumers);
    /** A consumer that ends by itself has met something that retrying cannot mend, a damaged log for instance. */
    const watched = (name: string, consumer: Consumer) => {
      consumers.set(name, consumer);
      metrics.retries.inc({ group: name }, 0);
      consumer.done.catch((err: Error) => {
        if (err.name === 'AbortError') return;
        trouble.ended(name, err);
        log.error({ err, consumer: name }, 'a consumer ended');
      });
    };
    const onRetry = (group: string, err: unknown) => {
      metrics.retries.inc({ group });
      trouble.retried(group, err);
      log.warn({ group, err }, 'a delivery failed and is tried again');
    };
    const checkpoints = new LmdbCheckpoints(folder.paths.bus);
    started('checkpoints', checkpoints, () => checkpoints.close());
    const changes = new Map<string, number>();
    const changed = ({ name }: View) => changes.set(name, (changes.get(name) ?? 0) + 1);
    const projections = new Projections({
      views,
      sink,
      store,
      upcast,
      makeBus: (checkpoints) => watch.bus(new EmbeddedBus(store, checkpoints, onRetry), typesOfView),
      onCommitted: (committed) => {
        changed(committed.view);
        metrics.onCommitted(committed);
        hot.committed(committed);
      },
      onSwapped: (view) => {
        changed(view);
        hot.swapped(view);
      },
      onBuildFailed: (view, err) => onRetry(groupOf(view), err),
    });
    const folds = new Folds({ store });
    const { load } = folds;
    const handle = createHandle({ store, folds, onHandled: watch.onHandled, onAppended: watch.onAppended });
    const artifacts = new FileArtifacts(folder.paths.artifacts);
    const egress = config.egress === undefined ? undefined : new Egress(readPolicy(config.egress, [], env));
    const pool = new Cells({ size: config.cells }, egress);
    started('cells', pool, () => pool.close({ kill: true }));
    const { operator: token, actorOf } = tokensOf(config, folder);
    const address = { url: `http://${config.host}:${config.port}` };
    const { sandbox: choice } = options;
    const { provider: paid, sandbox } = await paymentsFrom(config, {
      clock,
      url: () => address.url,
      ...(choice ? { sandbox: choice } : {}),
    });
    const provider = metrics.provider(paid);
    if (sandbox) started('sandbox', sandbox, () => sandbox.stop());
    const payments = provider?.title ?? 'play credits only: there is no key for Stripe';
    const analytics = new EmbeddedAnalytics(config, folder.paths, store, (err) => {
      metrics.retries.inc({ group: 'analytics' });
      log.warn({ err }, 'analytics stand still and are tried again');
    });
    started('analytics', analytics, () => analytics.stop());
    const live = new LiveMatches();
    /** Nobody waits before there is a door to wait at. */
    let waiting: GatewayPorts['waiting'] = () => [];
    const onInternalError = (err: unknown) => log.error({ err }, 'internal error');
    const identities = identitiesFrom({
      config,
      paths: folder.paths,
      load,
      database,
      limits,
      clock,
      ids,
      onInternalError,
      houseAccounts: HOUSE_ACCOUNTS,
      url: () => address.url,
      execute: (command) => execute(command),
    });
    const policies = contexts.flatMap((context) => context.policies ?? []);
    const letters = new PolicyLetters({ store, checkpoints, policies, execute: (command) => execute(command) });
    const parts = { config, store, load, database: reads, artifacts, metrics: metrics.registry, clock, ids, provider };
    const courier = courierPorts(folder.webhookKey(), clock, config.webhookPrivate);
    const ports: GatewayPorts = {
      ...gatewayPorts({ ...parts, boards, limits, live, cells: pool }),
      analytics,
      projections,
      letters,
      limits: metrics.limits(limits),
      changes: { of: (view) => changes.get(view) ?? 0 },
      webhooks: webhookPort(load, courier, config.webhookPrivate),
      waiting: () => waiting(),
      status: async () => [
        ...(await statusOf({ store, database, consumers, trouble, checkpoints, projections })),
        analytics.status(await store.lastPosition()),
        { part: 'payments', ready: true, detail: payments },
      ],
      visible: async (position) => {
        await untilSeen(consumers, position);
        await hot.settled();
      },
      content: contentFrom(config, log),
      observe: watch.onSeen,
      onProblem: metrics.onProblem,
      onInternalError,
      identities,
      actorOf,
    };
    const app = await createGateway(config, ports, handle);
    started('gateway', app, () => app.close());
    const commandBus = app.get(CommandBus);
    const execute = (command: Command): Promise<Handled> => commandBus.execute(command);

    onStep('projections');
    started('projections', projections, () => projections.stop());
    await hot.start();
    await projections.start();
    for (const [name, consumer] of projections.consumers) watched(`projection.${name}`, consumer);

    onStep('policies and runner');
    const spectators = await live.follow(store, upcast);
    started('live', spectators, () => spectators.stop());
    const bus = watch.bus(new EmbeddedBus(store, checkpoints, onRetry));
    started('bus', bus, () => bus.close());
    for (const policy of policies) watched(groupOfPolicy(policy), await runPolicy(bus, policy, execute));
    // What they gave up on before is tried once at every start: what was in the way may be gone.
    const { done, left } = await letters.replay();
    if (done.length + left.length > 0) log.warn({ done, left }, 'dead letters were handed out again');
    const queue = new WorkQueue(clock);
    const work = await followWork({
      store,
      checkpoints,
      queue,
      clock,
      execute,
      onRetry,
      playWaitMs: config.playWaitMs,
    });
    started('work', work, () => work.stop());
    if (provider) {
      const outgoing = await followPayments({ store, load, checkpoints, provider, clock, execute, onRetry });
      started('payments', outgoing, () => outgoing.stop());
      watched('payments.outgoing', outgoing);
    }
    const told = await followWebhooks({ store, load, checkpoints, ports: courier, execute, onRetry });
    started('webhooks', told, () => told.stop());
    const { leaseMs, runner: inside, grpcPort } = config;
    const desk = { store, load, artifacts, queue, live, clock, ids, leaseMs, execute };
    watched('runner', work);
    const expiry = await followExpiry({ store, checkpoints, clock, execute, onRetry });
    started('expiry', expiry, () => expiry.stop());
    watched('expiry', expiry);
    const waits = await followWaiting({ config, store, checkpoints, clock, execute, onRetry });
    started('waiting', waits, () => waits.stop());
    watched('waiting', waits);
    const onPlayed = ({ game, outcome }: { game: string; outcome: { reason: string } }) =>
      metrics.matches.inc({ game, reason: outcome.reason });
    const say = (text: string, matchId: string) => log.debug({ matchId }, text);
    if (inside) {
      const key = keyIn(folder.paths.runnerKey);
      const arena = await localArena(desk, key, false, claimIdsOf(config));
      // More in hand than cells: while one match waits for the log, a cell plays another.
      const cells = metrics.pool(pool);
      const runner = startRunner({ arena, key, pool: cells, concurrency: config.cells * 8, live: true, onPlayed, say });
      runner.done.catch((err: unknown) => trouble.ended('runner', err));
      // Matches under way get a moment to end; then they are handed back, and played after the next start.
      started('runner', runner, () => runner.drain(GRACE_MS));
    }
    const interceptors = [watchGrpc(ports)];
    const atTable = { config, desk, ports, bus, cells: pool, onPlayed, say, interceptors, watched: metrics.pool };
    const play =
      config.playPort === undefined ? undefined : await startPlay({ ...atTable, key: keyIn(folder.paths.tableKey) });
    addGauges(metrics.registry, {
      store,
      database,
      checkpoints,
      consumers,
      projections,
      cells: pool,
      queue,
      live,
      dataDir: config.dataDir,
      cellsMax: config.cells,
      logDir: folder.paths.log,
      analyticsPosition: () => analytics.position(),
      agentsConnected: () => play?.connected() ?? 0,
    });
    if (play) {
      play.runner.done.catch((err: unknown) => trouble.ended('table', err));
      watched('play.revocations', play.revocations);
      // Without its door nobody can make another move: what is under way is handed back.
      started('table', play, () => play.runner.drain(0));
    }
    let grpcAddress: string | undefined;
    let eventstore: OpenDoor | undefined;
    let playAddress: string | undefined;
    const openDoors = async () => {
      const url = await listen(app, config, folder);
      address.url = url;
      if (grpcPort !== undefined) {
        const door = { ...desk, actorOf, onInternalError: ports.onInternalError };
        const grpc = await serveRunners(door, { host: config.host, port: grpcPort, interceptors });
        started('grpc', grpc, () => grpc.close());
        grpcAddress = grpc.address;
      }
      if (config.eventstorePort !== undefined) {
        const tokens = { operatorToken: token, readerToken: folder.readerToken() };
        const { onInternalError } = ports;
        const door = { store, clock, ids, config, paths: folder.paths, ...tokens, onInternalError };
        const { openEventStoreDoor } = await import('../../gateway/eventstore/endpoint.js');
        const opened = await openEventStoreDoor(door, config.eventstorePort);
        started('eventstore', opened, () => opened.close());
        eventstore = opened;
      }
      if (play) {
        const door = await play.open();
        started('play', door, () => door.close());
        playAddress = door.address;
        waiting = door.waiting;
      }
      analytics.start();
      return url;
    };

    return {
      config,
      store,
      database,
      reads,
      artifacts,
      clock,
      ids,
      execute,
      status: ports.status,
      settled: () => untilSettled(store, consumers),
      listen: openDoors,
      payments,
      sandbox,
      grpcAddress: () => grpcAddress,
      eventstoreUrl: () => eventstore?.url,
      playAddress: () => playAddress,
      analyticsAddress: () => analytics.address(),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A PostgreSQL of this folder, for those who named none. */
async function ownPostgres(
  folder: DataFolder,
  started: <T>(name: string, part: T, stop: () => Promise<unknown>) => T,
): Promise<string> {
  const postgres = await startPostgres({ folder: folder.paths.postgres });
  return started('postgres', postgres, () => postgres.stop()).url;
}

/** Bounded: a projection that is stuck must not hold up the answer to a command that has long been carried out. */
async function untilSeen(consumers: ReadonlyMap<string, Consumer>, position: number): Promise<void> {
  const projections = [...consumers].filter(([name]) => name.startsWith('projection.'));
  for (let waitedMs = 0; waitedMs < VISIBLE_MS; waitedMs += 5) {
    if (projections.every(([, consumer]) => consumer.position() >= position)) return;
    await sleep(5);
  }
}

async function untilSettled(store: EventStore, consumers: ReadonlyMap<string, Consumer>): Promise<void> {
  for (;;) {
    const position = await store.lastPosition();
    const caughtUp = [...consumers.values()].every((consumer) => consumer.position() >= position);
    if (caughtUp && (await store.lastPosition()) === position) return;
    await sleep(10);
  }
}
