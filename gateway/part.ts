import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import { charts } from '../projections/analytics/charts.js';
import { statusFrom, viewNamed } from '../projections/engine/projections.js';
import type { View } from '../projections/engine/view.js';
import type { HotBoards } from '../projections/leaderboards/hot.js';
import { Strengths } from '../projections/leaderboards/strengths.js';
import { ClickHouseSink, clickHouseAt } from '../projections/sinks/clickhouse.js';
import { PostgresSink } from '../projections/sinks/postgres.js';
import { views } from '../projections/views.js';
import { cells } from '../sandbox-runner/part.js';
import type { MatchProposed } from '../services/arena/index.js';
import { upcast } from '../services/index.js';
import { AgonError, type EventStore } from '../services/kernel/index.js';
import { deadLetters } from '../services/runtime/dead-letters.js';
import type { ClickHouseServer, Rows } from '../services/runtime/engines.js';
import { version } from '../services/runtime/package.js';
import { definePart } from '../services/runtime/part.js';
import { writeSide } from '../services/runtime/write-side.js';
import { tokensOf } from './auth/machine-tokens.js';
import { identities } from './auth/part.js';
import { createGateway, listen } from './http.js';
import { spectators } from './live/part.js';
import { WAITING } from './play/part.js';
import type { Analytics, GatewayPorts, WaitingAgent } from './ports.js';
import { rulesOf } from './rules.js';
import { deliveryPortsOf, webhookPort } from './webhooks/part.js';

const VISIBLE_MS = 2_000;
const BEAT_MS = { first: 2, most: 20 };

/** GraphQL, REST, subscriptions and live feeds, over HTTP. */
export const gateway = definePart({
  name: 'gateway',
  needs: { writeSide, spectators, cells, identities, deadLetters },
  start: async ({ writeSide: { execute, load }, spectators: live, cells: pool, ...needs }, host) => {
    const { config, engines, clock, ids, metrics, onInternalError } = host;
    const [store, database, reads, artifacts, boards, limits, channel, folder, rows, payments] = await Promise.all([
      engines.log(),
      engines.database(),
      engines.reads(),
      engines.artifacts(),
      engines.boards(),
      engines.limits(),
      engines.channel(),
      engines.folder(),
      engines.rows(),
      engines.payments(),
    ]);
    const { onSeen: observe } = await host.telemetry();
    const { chart, close: closeCharts } = chartsOf(await engines.clickhouse());
    const strengths = new Strengths(reads);
    const ports: GatewayPorts = {
      ...rulesOf(config, pool),
      ...matchesIn(store),
      identities: needs.identities,
      letters: needs.deadLetters,
      execute,
      load,
      database: reads,
      artifacts,
      metrics: metrics.registry,
      clock,
      ids,
      payments,
      boards,
      limits: metrics.limits(limits),
      quotas: limits,
      live,
      version,
      strengths: (board) => strengths.of(board),
      analytics: { chart },
      projections: projectionsIn(database, store),
      changes: { of: (view) => rows.changesOf(view) },
      webhooks: webhookPort(load, await deliveryPortsOf(host), config.webhookPrivate),
      waiting: async () => ((await channel.lookUp(WAITING)) ?? []) as readonly WaitingAgent[],
      status: () => host.status(),
      visible: (position) => untilVisible(rows, boards, position),
      observe,
      onProblem: metrics.onProblem,
      onInternalError,
      actorOf: tokensOf(config, folder).actorOf,
    };
    const app = await createGateway(config, ports);
    const url = await listen(app, config).catch(async (error: unknown) => {
      await app.close();
      throw error;
    });
    host.addresses.url = url;
    folder.announce(url);
    const stop = async () => {
      await app.close();
      await closeCharts();
    };
    return { value: { url }, ready: async () => url, stop };
  },
});

function matchesIn(store: EventStore) {
  return {
    log: store,
    matchEvents: (matchId) => store.readStream(`match-${matchId}`),
    proposalOf: async (matchId) => {
      const [first] = await store.readStream(`match-${matchId}`, { limit: 1 });
      return first && (upcast(first) as never as MatchProposed & { position: number });
    },
  } satisfies Partial<GatewayPorts>;
}

/** Answers for charts, from where the part for analytics puts the events. */
function chartsOf(server: ClickHouseServer | undefined): Analytics & { close(): Promise<void> } {
  let sink: { readonly url: string; readonly at: ClickHouseSink } | undefined;
  return {
    chart: async (name, from, to) => {
      if (!server)
        throw new AgonError(
          'ANALYTICS.OFF',
          'There are no charts here: analytics are switched off, or this gateway knows no ClickHouse (CLICKHOUSE_URL).',
        );
      const url = server.url();
      if (sink?.url !== url) {
        await sink?.at.close();
        sink = { url, at: new ClickHouseSink(clickHouseAt(url)) };
      }
      return sink.at.query(charts[name].sql, { from, to });
    },
    close: async () => sink?.at.close(),
  };
}

/** The views by their rows, wherever they are kept; one that is asked for is built anew by whoever keeps it. */
function projectionsIn(database: DataSource, store: EventStore): GatewayPorts['projections'] {
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
async function untilVisible(rows: Rows, boards: HotBoards, position: number): Promise<void> {
  const endMs = performance.now() + VISIBLE_MS;
  try {
    for (let waitMs = BEAT_MS.first; performance.now() < endMs; waitMs = Math.min(BEAT_MS.most, waitMs * 2)) {
      if ((await rows.position()) >= position && ((await boards.mark())?.position ?? 0) >= position) return;
      await sleep(waitMs);
    }
  } catch {
    // What cannot be asked cannot be waited for.
  }
}
