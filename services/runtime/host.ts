import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { PartStatus } from '../../gateway/ports.js';
import { AgonError, asAgonError, type Consumer } from '../kernel/index.js';
import { createLog } from './logging.js';
import { Metrics } from './metrics.js';
import { version } from './package.js';
import type { Config } from './settings.js';
import { Trouble } from './status.js';

const WAIT_MS = { first: 100, most: 2_000 };
const LOOK_MS = 3_000;
/** Whatever goes on being wrong is told again sooner than this. */
const STAND_BY_TROUBLE_MS = 15_000;

interface Part {
  readonly name: string;
  readonly optional: boolean;
  /** Words about how it is; throws when it is not well. */
  look: () => Promise<string>;
}

/**
 * What every process of a cluster has around it: it waits for what it needs and says so, tells how it is on a port of
 * its own, and stops what it started in reverse order.
 */
export class Frame {
  readonly log: Logger;
  readonly consumers = new Map<string, Consumer>();
  readonly trouble = new Trouble(this.consumers);
  /** What `/metrics` shows. */
  readonly metrics = new Metrics();
  readonly signal: AbortSignal;
  /** Rejects when something ended that cannot go on. */
  readonly failed: Promise<never>;
  private fail: (error: unknown) => void = () => {};
  private readonly stopping = new AbortController();
  private readonly parts: Part[] = [];
  private readonly running: { name: string; stop: () => Promise<unknown> }[] = [];
  private server: Server | undefined;

  constructor(
    readonly config: Config,
    readonly names: readonly string[],
  ) {
    this.log = createLog({ level: config.logLevel }).child({ process: names.join('+') });
    this.signal = this.stopping.signal;
    this.failed = new Promise((_, reject) => {
      this.fail = reject;
    });
    this.failed.catch(() => {});
  }

  /** Opens the port on which the process says how it is; first of all, so that whoever asks learns what is missing. */
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

  /** Tries until it works. Meanwhile the process is not ready, and says why. */
  async need<T>(name: string, open: () => Promise<T>): Promise<T> {
    const part = this.part(name, async () => {
      throw new AgonError('STARTING', 'It is being waited for.');
    });
    let told = '';
    for (let waitMs = WAIT_MS.first; ; waitMs = Math.min(WAIT_MS.most, waitMs * 2)) {
      this.signal.throwIfAborted();
      try {
        const opened = await open();
        part.look = async () => 'there';
        if (told !== '') this.log.warn({ part: name }, 'is there now');
        return opened;
      } catch (thrown) {
        const error = asAgonError(thrown);
        // What was configured wrong does not mend itself.
        if (error.code.startsWith('CONFIG.')) throw error;
        part.look = async () => {
          throw error;
        };
        if (told !== error.message) this.log.warn({ part: name, code: error.code }, `waits: ${error.message}`);
        told = error.message;
        await sleep(waitMs, undefined, { signal: this.signal });
      }
    }
  }

  /** Something that the process consists of, and how it is asked about. */
  part(name: string, look: () => Promise<string>, optional = false): Part {
    const known = this.parts.find((part) => part.name === name);
    if (known) {
      known.look = look;
      return known;
    }
    const part = { name, look, optional };
    this.parts.push(part);
    return part;
  }

  started<T>(name: string, part: T, stop: () => Promise<unknown>): T {
    this.running.push({ name, stop });
    return part;
  }

  /**
   * A consumer of events: it is well while nothing keeps it from getting on. `last` is how far it could have come, and
   * throws when that cannot be said.
   */
  watch(name: string, consumer: Consumer, last: () => Promise<number>): void {
    this.consumers.set(name, consumer);
    this.metrics.retries.inc({ group: name }, 0);
    consumer.done.catch(this.giveUp);
    this.part(name, async () => {
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
      // What went wrong before it had caught up is over.
      if (behind > 0 && why !== undefined) throw new Error(`${behind} events behind; ${why}`);
      return `${behind} events behind`;
    });
  }

  readonly onRetry = (group: string, error: unknown): void => {
    this.metrics.retries.inc({ group });
    this.trouble.retried(group, error);
    this.log.warn({ group, err: error }, 'a delivery failed and is tried again');
  };

  /** Ends the process: there is no way on. */
  readonly giveUp = (error: unknown): void => this.fail(error);

  async status(): Promise<readonly PartStatus[]> {
    return Promise.all(this.parts.map(statusOf));
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    for (const part of this.running.splice(0).reverse()) {
      await part.stop().catch((err: unknown) => this.log.warn({ err, part: part.name }, 'did not stop as it should'));
    }
    this.server?.closeAllConnections();
    this.server?.close();
  }

  private async answer(url: string): Promise<{ status: number; type: string; body: string }> {
    const type = 'application/json';
    const { pathname } = new URL(url, 'http://localhost');
    if (pathname === '/healthz') {
      return { status: 200, type, body: JSON.stringify({ status: 'ok', version, processes: this.names }) };
    }
    if (pathname === '/readyz') {
      const parts = await this.status();
      const ready = !this.signal.aborted && parts.every((part) => part.ready || part.optional);
      const body = { status: ready ? 'ready' : 'not ready', processes: this.names, parts };
      return { status: ready ? 200 : 503, type, body: JSON.stringify(body) };
    }
    if (pathname === '/metrics') {
      const { registry } = this.metrics;
      return { status: 200, type: registry.contentType, body: await registry.metrics() };
    }
    return { status: 404, type, body: JSON.stringify({ status: 'There are /healthz, /readyz and /metrics here.' }) };
  }
}

/** An engine that does not answer at all must not keep us from answering. */
async function statusOf({ name: part, look, optional }: Part): Promise<PartStatus> {
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
