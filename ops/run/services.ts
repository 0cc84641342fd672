import { ruled } from '../../gateway/content.js';
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { CommandBus, CqrsModule } from '@nestjs/cqrs';
import { serveRunners } from '../../gateway/grpc/server.js';
import { SharedLive } from '../../gateway/live/shared.js';
import { watchGrpc } from '../../gateway/observe.js';
import { tokensOf } from '../../gateway/part.js';
import { FileArtifacts } from '../../services/adapters/artifacts.js';
import { contexts } from '../../services/index.js';
import {
  type Command,
  type Consumer,
  type Context,
  createHandle,
  type EventStore,
  type Folds,
  type Handled,
  randomIds,
} from '../../services/kernel/index.js';
import { contextModule, HANDLE } from '../../services/kernel/nest.js';
import { followPayments, paymentsFrom } from '../../services/payments/part.js';
import { clockOf } from '../../services/runtime/clock.js';
import { DataFolder } from '../../services/runtime/data-folder.js';
import { followExpiry, followWaiting } from '../../services/runtime/due.js';
import { addGauges } from '../../services/runtime/gauges.js';
import type { Frame } from '../../services/runtime/host.js';
import { queueOf, tendDoor } from '../../services/runtime/leader.js';
import { type Watch, watchFrom } from '../../services/runtime/observe.js';
import { runPolicy } from '../../services/runtime/policies.js';
import { contentFrom } from './content.js';
import type { Engines } from './engines.js';
import type { Doors } from './main.js';

const ARENA_PORT = 4601;

/** Contexts whose policies have a process of their own; those of all others run with the arena's. */
const ELSEWHERE = ['wallet', 'payments'];

class Kernel {}
class WriteSide {}

/** The write side's modules, as a gateway has them, without doors. */
async function writeSide(frame: Frame, store: EventStore, folds: Folds, { onHandled, onAppended }: Watch) {
  const handle = ruled(createHandle({ store, folds, onHandled, onAppended }), contentFrom(frame.config, frame.log));
  const kernel = {
    module: Kernel,
    global: true,
    providers: [{ provide: HANDLE, useValue: handle }],
    exports: [HANDLE],
  };
  const module = { module: WriteSide, imports: [kernel, CqrsModule.forRoot(), ...contexts.map(contextModule)] };
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  frame.started('write side', app, () => app.close());
  const bus = app.get(CommandBus);
  return (command: Command): Promise<Handled> => bus.execute(command);
}

/** What the services have in common: the log, a way to ask for commands, and a bus to hear events by. */
export async function serviceParts(frame: Frame, engines: Engines) {
  const { config, onRetry } = frame;
  const [store, folds, checkpoints, makeBus] = await Promise.all([
    engines.store(),
    engines.folds(),
    engines.checkpoints(),
    engines.makeBus(),
  ]);
  const watch = await watched(frame);
  const execute = await writeSide(frame, store, folds, watch);
  const follow = async (name: string, start: () => Promise<Consumer>) => {
    const consumer = await frame.need(name, start);
    frame.started(name, consumer, () => consumer.stop());
    frame.watch(name, consumer, () => store.lastPosition());
  };
  const policies = async (own: (context: Context) => boolean) => {
    const bus = watch.bus(makeBus(checkpoints));
    frame.started('bus', bus, () => bus.close());
    for (const policy of contexts.filter(own).flatMap((context) => context.policies ?? [])) {
      await follow(`policy.${policy.name}`, () => runPolicy(bus, policy, execute));
    }
  };
  const { load } = folds;
  return {
    config,
    store,
    load,
    checkpoints,
    makeBus,
    watch,
    execute,
    clock: clockOf(config),
    onRetry,
    follow,
    policies,
  };
}

const watches = new WeakMap<Frame, Promise<Watch>>();

/** Counts and traces what a process does; once, however many run in it. */
export function watched(frame: Frame): Promise<Watch> {
  const known = watches.get(frame) ?? beginToWatch(frame);
  watches.set(frame, known);
  return known;
}

async function beginToWatch(frame: Frame): Promise<Watch> {
  const { config, log, metrics } = frame;
  const watch = await watchFrom(config, metrics, log, clockOf(config));
  return frame.started('watch', watch, () => watch.close());
}

/** Stakes and payouts, and holds that run out. */
export async function wallet(frame: Frame, engines: Engines): Promise<Doors> {
  const parts = await serviceParts(frame, engines);
  await parts.policies(({ name }) => name === 'wallet');
  await parts.follow('expiry', () => followExpiry(parts));
  return {};
}

/** Money that comes and goes, and the calls to whoever moves it. */
export async function payments(frame: Frame, engines: Engines): Promise<Doors> {
  const parts = await serviceParts(frame, engines);
  await parts.policies(({ name }) => name === 'payments');
  const { config, clock } = parts;
  const url = () => `http://${config.host}:${config.port}`;
  const { provider: paid } = await paymentsFrom(config, { clock, url });
  const provider = frame.metrics.provider(paid);
  frame.part('provider', async () => provider?.title ?? 'play credits only: there is no key for Stripe');
  if (provider) await parts.follow('payments.outgoing', () => followPayments({ ...parts, provider }));
  return {};
}

/** Escrow, the queue of matches, their leases, and the door for runners. */
export async function arena(frame: Frame, engines: Engines): Promise<Doors> {
  const parts = await serviceParts(frame, engines);
  const { config, store, load, clock, execute, watch } = parts;
  await parts.policies(({ name }) => !ELSEWHERE.includes(name));
  const work = await queueOf(frame, parts, 'runner');
  addGauges(frame.metrics.registry, { queue: work.queue });
  await parts.follow('waiting', () => followWaiting(parts));
  const folder = DataFolder.beside(config.dataDir);
  const { actorOf } = tokensOf(config, folder);
  const live = new SharedLive(config.redisUrl === undefined ? undefined : await engines.redis());
  const artifacts = new FileArtifacts(folder.paths.artifacts);
  const onInternalError = (err: unknown) => frame.log.error({ err }, 'internal error');
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
  const { host, grpcPort: port = ARENA_PORT } = config;
  const interceptors = [watchGrpc({ ids: randomIds, observe: watch.onSeen })];
  const open = () => serveRunners({ ...desk, actorOf, onInternalError }, { host, port, interceptors });
  return { grpc: await tendDoor(frame, 'door for runners', work, open) };
}
