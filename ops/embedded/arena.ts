import 'reflect-metadata';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandBus } from '@nestjs/cqrs';
import { pino } from 'pino';
import type { DataSource } from 'typeorm';
import { serveRunners } from '../../gateway/grpc/server.js';
import { LiveMatches } from '../../gateway/live/matches.js';
import type { GatewayPorts, PartStatus } from '../../gateway/ports.js';
import { Projections } from '../../projections/engine/projections.js';
import { groupOf } from '../../projections/engine/projector.js';
import { HotFeed } from '../../projections/leaderboards/hot.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { openDatabase } from '../../projections/sinks/database.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { upcast, views } from '../../projections/views.js';
import {
  assertSeats,
  Cells,
  defaultLimits,
  Egress,
  gameNamed,
  gameNames,
  keyIn,
  readPolicy,
  startRunner,
} from '../../sandbox-runner/index.js';
import { FileArtifacts } from '../../services/adapters/artifacts.js';
import { LmdbCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { type MatchProposed, WorkQueue } from '../../services/arena/index.js';
import { contexts } from '../../services/index.js';
import {
  type Actor,
  type Artifacts,
  type Clock,
  type Command,
  type Config,
  type Consumer,
  createHandle,
  type EventStore,
  type Handled,
  type Ids,
  randomIds,
  systemClock,
} from '../../services/kernel/index.js';
import { readWallet } from '../../services/wallet/index.js';
import { startPostgres } from '../engines/postgres.js';
import type { Sandbox } from '../stripe-sandbox/server.js';
import { version } from '../version.js';
import { EmbeddedAnalytics } from './analytics.js';
import { DataFolder, sameToken } from './data-folder.js';
import type { OpenDoor } from './eventstore.js';
import { followExpiry } from './expiry.js';
import { createGateway, listen } from './http.js';
import { HOUSE_ACCOUNTS } from './ladder.js';
import { logName, openLog } from './log.js';
import { Metrics } from './metrics.js';
import { followPayments, paymentsFrom, type SandboxChoice } from './payments.js';
import { startPlay } from './play.js';
import { runPolicy } from './policies.js';
import { sharedFrom } from './shared.js';
import { statusOf, Trouble } from './status.js';
import { Strengths } from './strengths.js';
import { followWork, localArena } from './work.js';

const GRACE_MS = 2_000;
const VISIBLE_MS = 2_000;

export interface Arena {
  readonly config: Config;
  readonly store: EventStore;
  readonly database: DataSource;
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
  const { clock = systemClock, ids = randomIds, onStep = () => {} } = options;
  const log = pino({ level: config.logLevel }, pino.destination(2));
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
    const postgres = await startPostgres({ folder: folder.paths.postgres });
    started('postgres', postgres, () => postgres.stop());
    const database = await openDatabase(postgres.url);
    started('database', database, () => database.destroy());

    const sink = new PostgresSink(database);
    const { boards, limits } = await sharedFrom(config, clock, started, log);
    const hot = new HotFeed(boards, leaderboardsView, sink, (err) => log.error({ err }, 'the hot boards fell behind'));
    const strengths = new Strengths(database);

    onStep('write side');
    const consumers = new Map<string, Consumer>();
    const trouble = new Trouble(consumers);
    /** A consumer that ends by itself has met something that retrying cannot mend, a damaged log for instance. */
    const watched = (name: string, consumer: Consumer) => {
      consumers.set(name, consumer);
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
    const metrics = new Metrics(async () => {
      const position = await store.lastPosition();
      const lag = new Map([...consumers].map(([name, c]) => [name, position - c.position()]));
      return { position, lag: lag.set('analytics', position - analytics.position()) };
    });
    const projections = new Projections({
      ...{ views, sink, store, upcast },
      makeBus: (checkpoints) => new EmbeddedBus(store, checkpoints, onRetry),
      onCommitted: (committed) => {
        metrics.onCommitted(committed);
        hot.committed(committed);
      },
      onSwapped: hot.swapped,
      onBuildFailed: (view, err) => onRetry(groupOf(view), err),
    });
    const handle = createHandle({ store, onHandled: metrics.onHandled });
    const artifacts = new FileArtifacts(folder.paths.artifacts);
    const egress = config.egress === undefined ? undefined : new Egress(readPolicy(config.egress, [], env));
    const pool = new Cells({ size: config.cells }, egress);
    started('cells', pool, () => pool.close({ kill: true }));
    const [token, runnerToken] = [folder.operatorToken(), folder.runnerToken()];
    const actorOf = (given: string): Actor | undefined => {
      if (sameToken(given, token)) return { id: 'operator', role: 'operator' };
      return sameToken(given, runnerToken) ? { id: 'runner', role: 'runner' } : undefined;
    };
    const address = { url: `http://${config.host}:${config.port}` };
    const { sandbox: choice } = options;
    const { provider, sandbox } = await paymentsFrom(config, {
      ...{ clock, url: () => address.url },
      ...(choice ? { sandbox: choice } : {}),
    });
    if (sandbox) started('sandbox', sandbox, () => sandbox.stop());
    const payments = provider?.title ?? 'play credits only: there is no key for Stripe';
    const analytics = new EmbeddedAnalytics(config, folder.paths, store, (err) => {
      metrics.retries.inc({ group: 'analytics' });
      log.warn({ err }, 'analytics stand still and are tried again');
    });
    started('analytics', analytics, () => analytics.stop());
    const live = new LiveMatches();
    const ports: GatewayPorts = {
      database,
      analytics,
      artifacts,
      metrics: metrics.registry,
      clock,
      ids,
      rakeBps: config.rakeBps,
      payments: provider,
      houseAccounts: HOUSE_ACCOUNTS,
      depositClearingS: config.depositClearingS,
      disputeWindowMs: config.disputeWindowHours * 3_600_000,
      computeCents: `${config.computePrice}`,
      accountEvents: (accountId) => store.readStream(`account-${accountId}`),
      walletOf: (accountId) => readWallet(store, upcast, accountId),
      proposalOf: async (matchId) => {
        const [first] = await store.readStream(`match-${matchId}`, { limit: 1 });
        return first && (upcast(first) as never as MatchProposed & { position: number });
      },
      games: gameNames,
      assertSeats: (game, agents) => assertSeats(gameNamed(game), agents),
      version,
      projections,
      boards,
      limits,
      live,
      spectatorDelayMs: config.spectatorDelayMs,
      strengths: (board) => strengths.of(board),
      sourceBytesMax: defaultLimits.sourceBytes,
      checkSource: (source, runtime) => pool.check(source, runtime),
      status: async () => [
        ...(await statusOf({ store, database, consumers, trouble, checkpoints, projections })),
        analytics.status(await store.lastPosition()),
        { part: 'payments', ready: true, detail: payments },
      ],
      visible: async (position) => {
        await untilSeen(consumers, position);
        await hot.settled();
      },
      onInternalError: (err) => log.error({ err }, 'internal error'),
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
    metrics.watch(projections);

    onStep('policies and runner');
    const spectators = await live.follow(store, upcast);
    started('live', spectators, () => spectators.stop());
    const bus = new EmbeddedBus(store, checkpoints, onRetry);
    started('bus', bus, () => bus.close());
    for (const policy of contexts.flatMap((context) => context.policies ?? [])) {
      watched(`policy.${policy.name}`, await runPolicy(bus, policy, execute));
    }
    const queue = new WorkQueue(clock);
    const work = await followWork({ store, checkpoints, queue, clock, execute, onRetry });
    started('work', work, () => work.stop());
    if (provider) {
      const outgoing = await followPayments({ store, checkpoints, provider, clock, execute, onRetry });
      started('payments', outgoing, () => outgoing.stop());
      watched('payments.outgoing', outgoing);
    }
    const { leaseMs, runner: inside, grpcPort } = config;
    const desk = { store, artifacts, queue, live, clock, ids, leaseMs, execute };
    watched('runner', work);
    const expiry = await followExpiry({ store, checkpoints, clock, execute, onRetry });
    started('expiry', expiry, () => expiry.stop());
    watched('expiry', expiry);
    const onPlayed = ({ game, outcome }: { game: string; outcome: { reason: string } }) =>
      metrics.matches.inc({ game, reason: outcome.reason });
    const say = (text: string, matchId: string) => log.debug({ matchId }, text);
    if (inside) {
      const key = keyIn(folder.paths.runnerKey);
      const arena = await localArena(desk, key);
      // More in hand than cells: while one match waits for the log, a cell plays another.
      const runner = startRunner({ arena, key, pool, concurrency: config.cells * 8, live: true, onPlayed, say });
      runner.done.catch((err: unknown) => trouble.ended('runner', err));
      // Matches under way get a moment to end; then they are handed back, and played after the next start.
      started('runner', runner, () => runner.drain(GRACE_MS));
    }
    const play =
      config.playPort === undefined
        ? undefined
        : await startPlay({ config, desk, ports, bus, cells: pool, key: keyIn(folder.paths.tableKey), onPlayed, say });
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
        const grpc = await serveRunners(door, { host: config.host, port: grpcPort });
        started('grpc', grpc, () => grpc.close());
        grpcAddress = grpc.address;
      }
      if (config.eventstorePort !== undefined) {
        const tokens = { operatorToken: token, readerToken: folder.readerToken() };
        const { onInternalError } = ports;
        const door = { store, clock, ids, config, paths: folder.paths, ...tokens, onInternalError };
        const { openEventStoreDoor } = await import('./eventstore.js');
        const opened = await openEventStoreDoor(door, config.eventstorePort);
        started('eventstore', opened, () => opened.close());
        eventstore = opened;
      }
      if (play) {
        const door = await play.open();
        started('play', door, () => door.close());
        playAddress = door.address;
      }
      analytics.start();
      return url;
    };

    return {
      config,
      store,
      database,
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
