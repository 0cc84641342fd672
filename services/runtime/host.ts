import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { AgonError, asAgonError, type Clock, type Consumer, type Ids, invariant, randomIds } from '../kernel/index.js';
import { clockOf } from './clock.js';
import type { Engines } from './engines.js';
import { addConsumerGauges } from './gauges.js';
import { createLog } from './logging.js';
import { Metrics } from './metrics.js';
import { type Telemetry, telemetryFrom } from './observe.js';
import { version } from './package.js';
import type { Part, Running } from './part.js';
import type { Config } from './settings.js';
import { type PartStatus, Trouble } from './status.js';

const WAIT_MS = { first: 100, most: 2_000 };
const LOOK_MS = 3_000;
/** Whatever goes on being wrong is told again sooner than this. */
const STAND_BY_TROUBLE_MS = 15_000;
/** What has not started by then is not waited for when the host stops; should it start after all, it is stopped then. */
const LATE_MS = 5_000;

/** Something that says how it is. */
interface Entry {
  readonly name: string;
  optional: boolean;
  /** Words about how it is; throws when it is not well. Nobody asks what has none. */
  look: (() => Promise<string>) | undefined;
}

type Starting = Promise<Running<unknown>>;

export interface HostOptions<E extends Engines = Engines> {
  readonly config: Config;
  /** What runs here, for the log and for whoever asks. */
  readonly names: readonly string[];
  engines(host: Host): E;
  /** Whether an engine that is not there is waited for. The start fails at once otherwise. */
  readonly waits: boolean;
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** Called with the name of each part and engine as it begins to start. */
  readonly onStep?: (name: string) => void;
}

/** How far somebody is behind. Only our own log counts its events: elsewhere positions grow by bytes. */
export const behindIn = ({ storeUrl }: Pick<Config, 'storeUrl'>, behind: number): string =>
  `${behind} ${storeUrl ? 'positions' : 'events'} behind`;

/**
 * Runs parts: starts them in the order of their needs, says how they are, and stops them in reverse order, each once what
 * stands on it has stopped. Engines stop after all parts.
 */
export class Host<E extends Engines = Engines> {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly engines: E;
  readonly consumers = new Map<string, Consumer>();
  readonly trouble = new Trouble(this.consumers);
  /** What `/metrics` shows. */
  readonly metrics = new Metrics();
  /** Where this host can be reached, by what is reached there: url, grpc, play, eventstore, stripe, clickhouse. */
  readonly addresses: Partial<Record<'url' | 'grpc' | 'play' | 'eventstore' | 'stripe' | 'clickhouse', string>> = {};
  /** Fires when the host begins to stop. */
  readonly signal: AbortSignal;
  /** Rejects when something ended that cannot go on. */
  readonly failed: Promise<never>;
  private fail: (error: unknown) => void = () => {};
  private readonly stopping = new AbortController();
  private readonly entries: Entry[] = [];
  private readonly parts = new Map<string, Starting>();
  private readonly opened = new Map<string, Starting>();
  /** In the order in which they came up: an engine that another one stands on came before it. */
  private readonly openedOrder: { readonly name: string; readonly running: Running<unknown> }[] = [];
  private server: Server | undefined;
  private stopped: Promise<void> | undefined;

  constructor(private readonly options: HostOptions<E>) {
    const { config, names, clock = clockOf(config), ids = randomIds } = options;
    this.config = config;
    this.clock = clock;
    this.ids = ids;
    this.log = createLog({ level: config.logLevel }).child({ process: names.join('+') });
    this.signal = this.stopping.signal;
    this.failed = new Promise((_, reject) => {
      this.fail = reject;
    });
    this.failed.catch(() => {});
    this.engines = options.engines(this);
  }

  /** Opens the port on which a process says how it is; first of all, so that whoever asks learns what is missing. */
  async open(): Promise<string> {
    const server = createServer((request, response) => {
      this.answer(request.url ?? '/').then(
        ({ status, type, body }) => response.writeHead(status, { 'content-type': type }).end(body),
        (error: unknown) => response.writeHead(500).end(asAgonError(error).message),
      );
    });
    const { host, healthPort } = this.config;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(healthPort, host, () => resolve());
    }).catch((error: Error) => {
      throw new AgonError('NET.CANNOT_LISTEN', `Cannot listen on ${host}:${healthPort}: ${error.message}.`);
    });
    this.server = server;
    const { port } = server.address() as AddressInfo;
    return `http://${host}:${port}`;
  }

  /**
   * Starts these parts and what they need, side by side as far as their needs allow. Where one needs a part of a name that
   * is in the list, it gets the one in the list.
   */
  async start(list: readonly Part[]): Promise<void> {
    const begun = inOrder(list).filter((part) => !this.parts.has(part.name));
    const starting = begun.map((part) => this.startPart(part));
    for (const [i, part] of begun.entries()) this.parts.set(part.name, starting[i] as Starting);
    await Promise.all(starting);
  }

  /** What a part that has started is good for. */
  async value<Value>(part: Part<Value>): Promise<Value> {
    const starting = this.parts.get(part.name);
    invariant(starting, `${part.name} runs here.`);
    return (await starting).value as Value;
  }

  has(part: Part): boolean {
    return this.parts.has(part.name);
  }

  /** Where the gateway answers, as far as this process knows. */
  url(): string {
    return this.addresses.url ?? `http://${this.config.host}:${this.config.port}`;
  }

  /** The same, as people reach it. */
  publicUrl(): string {
    return this.config.publicUrl ?? this.url();
  }

  /** Opens an engine, unless it is open. */
  engine<Value>(name: string, open: () => Promise<Running<Value>>): Promise<Value> {
    let opening = this.opened.get(name);
    if (!opening) {
      opening = this.need(this.entry(name), open).then((running) => {
        this.openedOrder.push({ name, running });
        return running;
      });
      this.opened.set(name, opening);
    }
    return opening.then(({ value }) => value as Value);
  }

  /** Who counts, traces and logs what happens here. */
  telemetry(): Promise<Telemetry> {
    const { config, metrics, log, clock } = this;
    return this.engine('telemetry', async () => {
      const telemetry = await telemetryFrom(config, metrics, log, clock);
      return { value: telemetry, stop: () => telemetry.close() };
    });
  }

  /**
   * A consumer of events, as something that runs: it is well while nothing keeps it from getting on. `last` is how far it
   * could have come, and throws when that cannot be said.
   */
  follow<C extends Consumer>(name: string, consumer: C, last = () => this.lastPosition()): Running<C> {
    if (this.consumers.size === 0) addConsumerGauges(this);
    this.consumers.set(name, consumer);
    this.metrics.retries.inc({ group: name }, 0);
    consumer.done.catch((error: Error) => {
      if (error.name === 'AbortError' || this.signal.aborted) return;
      this.trouble.ended(name, error);
      this.giveUp(error, name);
    });
    this.entry(name).look = () => this.lookAt(name, consumer, last);
    return { value: consumer, stop: () => consumer.stop() };
  }

  readonly onRetry = (group: string, error: unknown): void => {
    this.metrics.retries.inc({ group });
    this.trouble.retried(group, error);
    this.log.warn({ group, err: error }, 'a delivery failed and is tried again');
  };

  /** Hears of every error that is our own fault. */
  readonly onInternalError = (err: unknown): void => this.log.error({ err }, 'internal error');

  /** There is no way on for this. What that means for the process is for whoever waits for `failed`. */
  readonly giveUp = (err: unknown, what = ''): void => {
    if (this.signal.aborted) return;
    this.log.error({ err, consumer: what }, 'ended by itself');
    this.fail(err);
  };

  /** How something is that belongs to a part, under a name of its own. */
  say(name: string, look: () => Promise<string>): void {
    this.entry(name).look = look;
  }

  async status(): Promise<readonly PartStatus[]> {
    const asked = this.entries.flatMap((entry) => (entry.look ? [statusOf(entry, entry.look)] : []));
    return Promise.all(asked);
  }

  /** Ends all of it. What does not stop as it should is logged, and keeps nothing else from it. */
  stop(): Promise<void> {
    this.stopped ??= this.stopAll();
    return this.stopped;
  }

  private async stopAll(): Promise<void> {
    this.stopping.abort();
    const ended = (name: string) => (err: unknown) => this.log.warn({ err, part: name }, 'did not stop as it should');
    for (const [name, starting] of [...this.parts].reverse()) {
      const running = await orLate(starting);
      if (running !== 'late') await running?.stop?.().catch(ended(name));
      else void starting.then((late) => late.stop?.()).catch(ended(name));
    }
    for (const opening of this.opened.values()) await orLate(opening);
    for (const { name, running } of this.openedOrder.reverse()) await running.stop?.().catch(ended(name));
    this.server?.closeAllConnections();
    this.server?.close();
  }

  private async startPart(part: Part): Promise<Running<unknown>> {
    // All parts of the list are known by then.
    await Promise.resolve();
    const entry = this.entry(part.name);
    entry.look = async () => {
      const needed = Object.values(part.needs).map(({ name }) => name);
      throw new AgonError('STARTING', `It waits for ${needed.join(', ')}.`);
    };
    const needs = Object.entries(part.needs).map(async ([as, { name }]) => {
      const needed = this.parts.get(name);
      invariant(needed, `${name} is started before ${part.name}.`);
      return [as, (await needed).value];
    });
    const values = Object.fromEntries(await Promise.all(needs)) as never;
    return this.need(entry, () => part.start(values, this));
  }

  /** Tries until it works, if this host waits. Meanwhile it is not ready, and says why. */
  private async need<T>(entry: Entry, open: () => Promise<Running<T>>): Promise<Running<T>> {
    const { name } = entry;
    const waiting = (error: Error) => {
      entry.look = async () => {
        throw error;
      };
      return entry.look;
    };
    let look = waiting(new AgonError('STARTING', 'It is being waited for.'));
    this.options.onStep?.(name);
    let told = '';
    for (let waitMs = WAIT_MS.first; ; waitMs = Math.min(WAIT_MS.most, waitMs * 2)) {
      this.signal.throwIfAborted();
      try {
        const running = await open();
        entry.optional = running.optional ?? false;
        // A consumer that it began to follow may speak for it already.
        if (running.ready || entry.look === look) entry.look = running.ready?.bind(running);
        if (told !== '') this.log.warn({ part: name }, 'is there now');
        return running;
      } catch (thrown) {
        const error = asAgonError(thrown);
        // What was configured wrong does not mend itself.
        if (!this.options.waits || error.code.startsWith('CONFIG.')) throw await this.explained(name, error);
        look = waiting(error);
        if (told !== error.message) this.log.warn({ part: name, code: error.code }, `waits: ${error.message}`);
        told = error.message;
        await sleep(waitMs, undefined, { signal: this.signal });
      }
    }
  }

  /** What has no words of its own is told with the name of what did not start, and of the engines that are away. */
  private async explained(name: string, error: AgonError): Promise<AgonError> {
    if (error.code !== 'INTERNAL') return error;
    const away = (await this.status()).filter(({ part, ready, detail }) => {
      return !ready && this.opened.has(part) && !detail.startsWith('STARTING');
    });
    const words = [`${name} did not start: ${error.message}`, ...away.map(({ part, detail }) => `${part}: ${detail}`)];
    return new AgonError('START.FAILED', words.join('; '), {}, { cause: error.cause });
  }

  private entry(name: string): Entry {
    const known = this.entries.find((entry) => entry.name === name);
    if (known) return known;
    const entry: Entry = { name, optional: false, look: undefined };
    this.entries.push(entry);
    return entry;
  }

  private async lastPosition(): Promise<number> {
    return (await this.engines.log()).lastPosition();
  }

  private async lookAt(name: string, consumer: Consumer, last: () => Promise<number>): Promise<string> {
    const why = this.trouble.of(name);
    const end = await last().catch((error: Error) => {
      throw new Error([error.message, ...(why === undefined ? [] : [why])].join('; '));
    });
    if (consumer.active?.() === false) {
      // It does not get on, so nothing else would tell that what went wrong is over.
      const still = this.trouble.of(name, STAND_BY_TROUBLE_MS);
      if (still !== undefined) throw new Error(`stands by; ${still}`);
      return 'stands by';
    }
    const behind = Math.max(0, end - consumer.position());
    // What went wrong before it had caught up is over, unless it ended by that.
    const said = behindIn(this.config, behind);
    if (why !== undefined && (behind > 0 || this.trouble.isFinal(name))) throw new Error(`${said}; ${why}`);
    return said;
  }

  private async answer(url: string): Promise<{ status: number; type: string; body: string }> {
    const type = 'application/json';
    const { pathname } = new URL(url, 'http://localhost');
    const { names: processes } = this.options;
    if (pathname === '/healthz') {
      return { status: 200, type, body: JSON.stringify({ status: 'ok', version, processes }) };
    }
    if (pathname === '/readyz') {
      const parts = await this.status();
      const ready = !this.signal.aborted && parts.every((part) => part.ready || part.optional);
      const body = { status: ready ? 'ready' : 'not ready', processes, parts };
      return { status: ready ? 200 : 503, type, body: JSON.stringify(body) };
    }
    if (pathname === '/metrics') {
      const { registry } = this.metrics;
      return { status: 200, type: registry.contentType, body: await registry.metrics() };
    }
    return { status: 404, type, body: JSON.stringify({ status: 'There are /healthz, /readyz and /metrics here.' }) };
  }
}

/** The parts of a list and all that they need, each after its needs. */
function inOrder(list: readonly Part[]): Part[] {
  const chosen = new Map(list.map((part) => [part.name, part]));
  invariant(chosen.size === list.length, 'No part is in a list twice.');
  const order: Part[] = [];
  const visit = (given: Part, above: readonly string[]) => {
    const part = chosen.get(given.name) ?? given;
    invariant(!above.includes(part.name), `${part.name} does not need itself.`);
    if (order.includes(part)) return;
    for (const need of Object.values(part.needs)) visit(need, [...above, part.name]);
    order.push(part);
  };
  for (const part of list) visit(part, []);
  return order;
}

async function orLate<T>(starting: Promise<T>): Promise<T | 'late' | undefined> {
  const over = new AbortController();
  const late = sleep(LATE_MS, 'late' as const, { signal: over.signal }).catch(() => undefined);
  try {
    return await Promise.race([starting.catch(() => undefined), late]);
  } finally {
    over.abort();
  }
}

/** An engine that does not answer at all must not keep us from answering. */
async function statusOf({ name: part, optional }: Entry, look: () => Promise<string>): Promise<PartStatus> {
  const late = new AbortController();
  const tooLate = sleep(LOOK_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`no answer within ${LOOK_MS} ms`);
  });
  try {
    return { part, ready: true, detail: await Promise.race([look(), tooLate]), optional };
  } catch (error) {
    const { code, message } = asAgonError(error);
    return { part, ready: false, detail: code === 'INTERNAL' ? message : `${code}: ${message}`, optional };
  } finally {
    tooLate.catch(() => {});
    late.abort();
  }
}
