import 'reflect-metadata';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandBus } from '@nestjs/cqrs';
import type { Redis } from 'ioredis';
import type { DataSource } from 'typeorm';
import { identitiesFrom } from '../../gateway/auth/identities.js';
import { createGateway, listen } from '../../gateway/http.js';
import { LiveMatches } from '../../gateway/live/matches.js';
import { hearLive, waitingAt } from '../../gateway/live/shared.js';
import { gatewayPorts, tokensOf } from '../../gateway/part.js';
import type { Analytics, GatewayPorts } from '../../gateway/ports.js';
import { courierPorts, followWebhooks, webhookPort } from '../../gateway/webhooks/dispatcher.js';
import { charts } from '../../projections/analytics/charts.js';
import { statusFrom, viewNamed } from '../../projections/engine/projections.js';
import type { View } from '../../projections/engine/view.js';
import { ClickHouseSink, clickHouseAt } from '../../projections/sinks/clickhouse.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { RedisBoards } from '../../projections/sinks/redis.js';
import { upcast, views } from '../../projections/views.js';
import { Cells } from '../../sandbox-runner/index.js';
import { FileArtifacts } from '../../services/adapters/artifacts.js';
import { RedisLease } from '../../services/adapters/lease.js';
import { MemoryLimits } from '../../services/adapters/limits/memory.js';
import { RedisLimits } from '../../services/adapters/limits/redis.js';
import {
  AgonError,
  type Command,
  createHandle,
  type EventStore,
  type Handled,
  randomIds,
  type Subscription,
} from '../../services/kernel/index.js';
import { paymentsFrom } from '../../services/payments/part.js';
import { clockOf } from '../../services/runtime/clock.js';
import { DataFolder } from '../../services/runtime/data-folder.js';
import { addGauges } from '../../services/runtime/gauges.js';
import type { Frame } from '../../services/runtime/host.js';
import type { Config } from '../../services/runtime/settings.js';
import { contentFrom } from './content.js';
import type { Engines } from './engines.js';
import { HOUSE_ACCOUNTS } from './ladder.js';
import type { Doors } from './main.js';
import { watched } from './services.js';

const VISIBLE_MS = 2_000;
const BEAT_MS = 10;
const AGAIN_MS = 1_000;

/** The doors over HTTP: commands are carried out here, and queries answered from the read models. */
export async function gateway(frame: Frame, engines: Engines): Promise<Doors> {
  const { config, log, metrics } = frame;
  const { webhookPrivate } = config;
  const [store, folds, database, reads, redis] = await Promise.all([
    engines.store(),
    engines.folds(),
    engines.database(),
    engines.reads(),
    engines.redis(),
  ]);
  const { load } = folds;
  const clock = clockOf(config);
  const watch = await watched(frame);
  const folder = DataFolder.beside(config.dataDir);
  const cells = new Cells({ size: config.cells });
  frame.started('cells', cells, () => cells.close({ kill: true }));
  const boards = new RedisBoards(redis);
  const alone = new MemoryLimits(Date.now);
  const limits = new RedisLimits(redis, alone, (err) => log.warn({ err }, 'limits hold for this process alone'));
  const live = new LiveMatches();
  const spectators = await live.follow(store, upcast);
  spectators.done.catch(frame.giveUp);
  frame.started('live', spectators, () => spectators.stop());
  await hearLive(await engines.patientRedis('live turns'), live);
  const address = { url: `http://${config.host}:${config.port}` };
  const { provider: paid } = await paymentsFrom(config, { clock, url: () => address.url });
  const provider = metrics.provider(paid);
  const artifacts = new FileArtifacts(folder.paths.artifacts);
  const same = {
    config,
    store,
    load,
    database: reads,
    artifacts,
    metrics: metrics.registry,
    clock,
    ids: randomIds,
    provider,
  };
  const courier = courierPorts(folder.webhookKey(), clock, webhookPrivate);
  const onInternalError = (err: unknown) => log.error({ err }, 'internal error');
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
    url: () => address.url,
    execute: (command) => execute(command),
  });
  const ports: GatewayPorts = {
    ...gatewayPorts({ ...same, boards, limits, live, cells }),
    analytics: chartsOf(frame, config),
    projections: projectionsOf(database, store),
    limits: metrics.limits(limits),
    // Rows are changed by other processes: nothing is known to be as it was.
    changes: { of: () => undefined },
    webhooks: webhookPort(load, courier, webhookPrivate),
    status: () => frame.status(),
    waiting: () => waitingAt(redis),
    visible: (position) => untilVisible(database, boards, position),
    content: contentFrom(config, log),
    observe: watch.onSeen,
    onProblem: metrics.onProblem,
    onInternalError,
    identities,
    actorOf: tokensOf(config, folder).actorOf,
  };
  addGauges(metrics.registry, { database, cells, live, cellsMax: config.cells, dataDir: config.dataDir });
  const { onHandled, onAppended } = watch;
  const app = await createGateway(config, ports, createHandle({ store, folds, onHandled, onAppended }));
  frame.started('gateway', app, () => app.close());
  const execute = (command: Command): Promise<Handled> => app.get(CommandBus).execute(command);
  const checkpoints = await engines.checkpoints();
  const { onRetry } = frame;
  tellWebhooks(frame, redis, () => followWebhooks({ store, load, checkpoints, ports: courier, execute, onRetry }));
  address.url = await frame.need('gateway', () => listen(app, config));
  frame.part('gateway', async () => address.url);
  return { url: address.url };
}

/** One gateway at a time tells webhooks; what it had under way when it died is told again by the next, with the same ids. */
function tellWebhooks(frame: Frame, redis: Redis, start: () => Promise<Subscription>): void {
  const { signal, config } = frame;
  const lease = new RedisLease({ redis, name: `${config.kafkaPrefix}.webhooks`, ids: randomIds });
  const telling = async () => {
    for (;;) {
      const held = await lease.acquire(signal);
      const over = AbortSignal.any([signal, held.lost]);
      const told = await frame.need('webhooks', start);
      const ended = told.done.catch((error: unknown) => frame.onRetry('webhooks', error));
      if (!over.aborted) await Promise.race([once(over, 'abort'), ended]);
      await told.stop();
      await held.release();
      // One that ended by itself begins again where its couriers were, and not at once.
      await sleep(AGAIN_MS, undefined, { signal });
    }
  };
  const done = telling().catch((error: unknown) => {
    if (!signal.aborted) frame.giveUp(error);
  });
  frame.started('webhooks', done, () => done);
}

/** Answers for charts from the ClickHouse that was named, where another process puts the events. */
function chartsOf(frame: Frame, { analytics, clickhouseUrl }: Config): Analytics {
  if (!analytics || clickhouseUrl === undefined) {
    const why = 'This gateway knows no ClickHouse. Name one by CLICKHOUSE_URL to have charts.';
    return {
      chart: async () => {
        throw new AgonError('ANALYTICS.OFF', why);
      },
    };
  }
  const sink = new ClickHouseSink(clickHouseAt(clickhouseUrl));
  frame.started('charts', sink, () => sink.close());
  return { chart: (name, from, to) => sink.query(charts[name].sql, { from, to }) };
}

/** The views as another process keeps them, and builds anew when it is asked to. */
function projectionsOf(database: DataSource, store: EventStore): GatewayPorts['projections'] {
  const sink = new PostgresSink(database);
  const status = (view: View) => statusFrom(sink, store, view);
  return {
    list: () => Promise.all(views.map(status)),
    status: (name) => status(viewNamed(views, name)),
    deadLetters: async (name) => {
      const asked = name === undefined ? views : [viewNamed(views, name)];
      return (await Promise.all(asked.map((view) => sink.letters(view)))).flat();
    },
    ask: async (name) => sink.ask(viewNamed(views, name)),
  };
}

/** Bounded: a projection that is behind must not hold up the answer to a command that has long been carried out. */
async function untilVisible(database: DataSource, boards: RedisBoards, position: number): Promise<void> {
  const sql = 'SELECT count(*)::int AS seen FROM checkpoints WHERE view = ANY($1) AND position >= $2';
  const names = views.map(({ name }) => name);
  try {
    for (const endMs = performance.now() + VISIBLE_MS; performance.now() < endMs; ) {
      const [{ seen }] = await database.query(sql, [names, position]);
      if (seen === names.length && ((await boards.mark())?.position ?? 0) >= position) return;
      await sleep(BEAT_MS);
    }
  } catch {
    // What cannot be asked cannot be waited for.
  }
}
