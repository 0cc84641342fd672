import { setTimeout as sleep } from 'node:timers/promises';
import type { EventStore } from '../../services/kernel/index.js';
import { Host, type HostOptions } from '../../services/runtime/host.js';
import type { Config } from '../../services/runtime/settings.js';
import { writeSide } from '../../services/runtime/write-side.js';
import { EmbeddedEngines, type EmbeddedOptions, OwnClickHouse } from './embedded.js';
import { embeddedParts, embeddedServers } from './parts.js';

/** The whole arena in one process. */
export type Arena = Awaited<ReturnType<typeof arenaOf>>;

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

async function arenaOf(host: Host<EmbeddedEngines>) {
  const { config, engines, clock, ids, addresses } = host;
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
    /** The same, as those see it who answer callers. */
    reads,
    artifacts,
    clock,
    ids,
    execute,
    status: () => host.status(),
    /** Resolves when everything that reacts to events has seen all of them, and nothing new came of it. */
    settled: () => untilSettled(host, store),
    /** Starts what listens; resolves with the address of the gateway. */
    listen: async () => {
      await host.start(embeddedServers(config));
      return host.url();
    },
    addresses,
    /** The stand-in for Stripe, if it was asked for. */
    sandbox: engines.sandbox,
    /** Who takes real money here, in words. */
    payments: provider?.title ?? 'play credits only: there is no key for Stripe',
    /** Where ClickHouse answers, once it does. */
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
