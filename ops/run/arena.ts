import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import type { Artifacts, Clock, Command, EventStore, Handled, Ids } from '../../services/kernel/index.js';
import { Host, type HostOptions } from '../../services/runtime/host.js';
import type { Config } from '../../services/runtime/settings.js';
import type { PartStatus } from '../../services/runtime/status.js';
import { writeSide } from '../../services/runtime/write-side.js';
import type { Sandbox } from '../stripe-sandbox/server.js';
import { EmbeddedEngines, type EmbeddedOptions, OwnClickHouse } from './embedded.js';
import { embeddedParts, embeddedServers } from './parts.js';

/** The whole arena in one process. */
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
  /** Starts what listens; resolves with the address of the gateway. */
  listen(): Promise<string>;
  /** Where it can be reached, once it listens. */
  readonly addresses: Host['addresses'];
  /** Who takes real money here, in words. */
  readonly payments: string;
  /** The stand-in for Stripe, if it was asked for. */
  readonly sandbox: Sandbox | undefined;
  /** Where ClickHouse answers, once it does. */
  analyticsAddress(): Promise<string | undefined>;
  stop(): Promise<void>;
}

export interface ArenaOptions extends EmbeddedOptions, Pick<HostOptions, 'clock' | 'ids' | 'onStep'> {}

/** Starts all parts on the engines of one process. An engine that is not there ends the start at once. */
export async function startArena(config: Config, { sandbox, ...options }: ArenaOptions = {}): Promise<Arena> {
  const engines = (host: Host) => new EmbeddedEngines(host, sandbox ? { sandbox } : {});
  const host = new Host({ ...options, config, names: ['arena'], engines, waits: false });
  try {
    await host.start(embeddedParts(config));
    return await arenaOf(host);
  } catch (error) {
    await host.stop();
    throw error;
  }
}

async function arenaOf(host: Host<EmbeddedEngines>): Promise<Arena> {
  const { config, engines, clock, ids } = host;
  const [store, database, reads, artifacts, provider, { execute }] = await Promise.all([
    engines.log(),
    engines.database(),
    engines.reads(),
    engines.artifacts(),
    engines.payments(),
    host.value(writeSide),
  ]);
  return {
    config,
    store,
    database,
    reads,
    artifacts,
    clock,
    ids,
    execute,
    status: () => host.status(),
    settled: () => untilSettled(host, store),
    listen: async () => {
      await host.start(embeddedServers(config));
      return host.url();
    },
    addresses: host.addresses,
    sandbox: engines.sandbox,
    payments: provider?.title ?? 'play credits only: there is no key for Stripe',
    analyticsAddress: async () => {
      const server = await engines.clickhouse();
      if (!(server instanceof OwnClickHouse)) return undefined;
      await server.firstAnswer;
      return server.running() ? server.url() : undefined;
    },
    stop: () => host.stop(),
  };
}

async function untilSettled({ consumers }: Host, store: EventStore): Promise<void> {
  for (;;) {
    const position = await store.lastPosition();
    // Nobody waits for analytics.
    const reacting = [...consumers].filter(([name]) => name !== 'analytics');
    const caughtUp = reacting.every(([, consumer]) => consumer.position() >= position);
    if (caughtUp && (await store.lastPosition()) === position) return;
    await sleep(10);
  }
}
