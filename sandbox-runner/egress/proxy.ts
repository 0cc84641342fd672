import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { connect as netConnect, type Socket } from 'node:net';
import { type Duplex, Transform } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { connect as tlsConnect } from 'node:tls';
import type { Caller, EgressEntry } from './log.js';
import { assertFraming, blot, blotting, endToEnd, explain, explained, gone, refusalOf, tooSlow } from './message.js';
import { fillSecrets, type Grant, type Rule } from './policy.js';
import { addressOf, Refusal, type RequestTarget, type Resolve, ruleFor, wantedOf } from './target.js';

interface ProxyOptions {
  readonly caller: Caller;
  readonly grant: Grant;
  readonly secrets: ReadonlyMap<string, string>;
  readonly authorities: readonly string[];
  readonly resolve: Resolve;
  readonly onEntry: (entry: EgressEntry) => void;
}

interface Route {
  readonly rule: Rule;
  readonly target: RequestTarget;
  readonly upstream: Socket;
}

/** What is known of one request while it lasts. */
class Visit {
  wanted: RequestTarget | undefined;
  readonly startedMs = performance.now();
  /** The connection to the upstream below any TLS, where bytes are counted. */
  wire: Socket | undefined;
  /** Fires with the first thing that went wrong: all that breaks because of it is no cause of its own. */
  readonly abort = new AbortController();
  timer: NodeJS.Timeout | undefined;

  constructor(readonly method: string) {}

  get bytesIn(): number {
    return this.wire?.bytesRead ?? 0;
  }

  get bytesOut(): number {
    return this.wire?.bytesWritten ?? 0;
  }

  /** To be called where something goes wrong, before any stream is taken down. */
  break(error: unknown): void {
    this.abort.abort(refusalOf(error));
  }

  /** What went wrong first; what is handed in, if nothing did. */
  cause(error: unknown): Refusal {
    return refusalOf(this.abort.signal.aborted ? this.abort.signal.reason : error);
  }
}

/**
 * An HTTP/1.1 forward proxy for one agent in one match, on a socket of its own. It reads and writes every message anew,
 * resolves names itself, connects only to what its grant allows, follows no redirect, and counts and logs all of it.
 */
export class EgressProxy {
  private readonly server: Server;
  private readonly visits = new Set<Visit>();
  private readonly sockets = new Set<Socket>();
  private readonly secretForms: readonly Buffer[];
  private count = 0;
  /** Of the visits that are over. */
  private readonly ended = { bytesIn: 0, bytesOut: 0 };

  private constructor(private readonly options: ProxyOptions) {
    this.secretForms = [...options.secrets.values()]
      .flatMap((value) => [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value), btoa(value)])
      .map((form) => Buffer.from(form, 'latin1'));
    const { headerBytes, headMs, connections } = options.grant.caps;
    this.server = createServer({
      maxHeaderSize: headerBytes,
      headersTimeout: headMs,
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(1_000, Math.ceil(headMs / 2)),
      requireHostHeader: false,
    });
    this.server.maxConnections = connections;
    // What follows a request on its connection is not looked at.
    this.server.maxRequestsPerSocket = 1;
    this.server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    this.server.on('request', (request, response) => void this.serve(request, response));
    this.server.on('connect', (request, socket, head) => void this.tunnel(request, socket, head));
    this.server.on('upgrade', ({ method }, socket) => {
      this.refuseBare(method, socket, new Refusal('BAD_REQUEST', 400, 'Protocols are not changed here.'));
    });
    this.server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.misread(error, socket));
    this.server.on('drop', () => {
      const visit = this.begin('');
      this.end(visit, 503, new Refusal('TOO_MANY_CONNECTIONS', 503, `No more than ${connections} at a time.`));
    });
  }

  static async listen(path: string, options: ProxyOptions): Promise<EgressProxy> {
    const proxy = new EgressProxy(options);
    await new Promise<void>((resolve, reject) => {
      proxy.server.once('error', reject).listen(path, resolve);
    });
    return proxy;
  }

  /** Cuts off whatever is under way. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    const over = new Refusal('CLOSED', 503, 'The match is over.');
    // Ended here and now, so that all of it is in the sums when this returns.
    for (const visit of [...this.visits]) {
      visit.break(over);
      this.end(visit, over.status, over);
    }
    // Also those that the server has handed over to a tunnel, or that an agent keeps half open.
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private begin(method = ''): Visit {
    const visit = new Visit(method.slice(0, 20));
    this.visits.add(visit);
    this.count += 1;
    return visit;
  }

  private end(visit: Visit, status: number, refusal?: Refusal): void {
    if (!this.visits.delete(visit)) return;
    clearTimeout(visit.timer);
    visit.wire?.destroy();
    const { bytesIn, bytesOut, wanted, method, startedMs } = visit;
    this.ended.bytesIn += bytesIn;
    this.ended.bytesOut += bytesOut;
    // Who keeps on asking after the last allowed request is told so, but fills no log with it.
    if (this.count > this.options.grant.caps.requests + 1) return;
    this.options.onEntry({
      ...this.options.caller,
      method,
      host: wanted?.host ?? '',
      port: wanted?.port ?? 0,
      path: this.redact(wanted?.path ?? ''),
      verdict: visit.wire ? 'allowed' : 'refused',
      code: refusal?.code ?? '',
      status,
      bytesIn,
      bytesOut,
      durationMs: Math.round(performance.now() - startedMs),
    });
  }

  /** Everything that a request and a tunnel have in common, up to the open connection. */
  private async reach(visit: Visit, request: IncomingMessage): Promise<Route> {
    const { grant, resolve, authorities } = this.options;
    const { requests, connectMs, totalMs } = grant.caps;
    const { signal } = visit.abort;
    visit.timer = setTimeout(() => visit.break(tooSlow(`longer than ${totalMs} ms`)), totalMs);
    if (this.count > requests)
      throw new Refusal('TOO_MANY_REQUESTS', 429, `${requests} requests are all that is allowed.`);
    assertFraming(request);
    const target = wantedOf(visit.method, request.url ?? '');
    visit.wanted = target;
    const rule = ruleFor(grant, target);
    this.assertRoom(0);
    const { address, family } = await addressOf(target.host, rule.allowPrivate === true, resolve);
    signal.throwIfAborted();
    const port = rule.upgrade ? rule.port : target.port;
    const wire = netConnect({ host: address, port, family, allowHalfOpen: true });
    visit.wire = wire;
    const late = setTimeout(() => wire.destroy(tooSlow(`no connection after ${connectMs} ms`)), connectMs);
    signal.addEventListener('abort', () => wire.destroy(signal.reason), { once: true });
    try {
      await opened(wire, 'connect');
      if (rule.upgrade === undefined) return { rule, upstream: wire, target };
      const ca = [...authorities];
      const secure = tlsConnect({ socket: wire, servername: target.host, ca, ALPNProtocols: ['http/1.1'] });
      await opened(secure, 'secureConnect');
      return { rule, upstream: secure, target };
    } finally {
      clearTimeout(late);
    }
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const visit = this.begin(request.method);
    response.shouldKeepAlive = false;
    for (const side of [request, response]) side.on('error', () => {});
    response.on('close', () => visit.break(gone()));
    let status = 0;
    try {
      this.assertRoom(Number(request.headers['content-length'] ?? 0));
      const reached = await this.reach(visit, request);
      const answer = await this.ask(visit, request, reached);
      answer.on('error', (error) => visit.break(error));
      status = answer.statusCode ?? 502;
      const secret = reached.rule.headers !== undefined;
      if (secret && !/^(identity)?$/.test(answer.headers['content-encoding'] ?? '')) {
        const why = 'The answer is compressed, so that nobody could tell whether it shows a secret.';
        throw new Refusal('UNREADABLE', 502, why);
      }
      const head = endToEnd(answer.rawHeaders).flatMap(([name, value]) => [name, this.redact(value)]);
      response.writeHead(status, head);
      // The agent's side stays open whatever happens: first it is written down, then the agent may notice.
      await pipeline(answer, this.metered(visit, 'in'), blotting(this.secretForms), response, { end: false });
      response.end();
      await finished(response);
      this.end(visit, status);
    } catch (error) {
      const refusal = visit.cause(error);
      const cut = response.headersSent || response.destroyed;
      this.end(visit, (cut && status) || refusal.status, refusal);
      if (cut) {
        response.destroy();
        return;
      }
      const body = explain(refusal);
      response
        .writeHead(refusal.status, { ...explained(refusal), 'content-length': Buffer.byteLength(body) })
        .end(body);
    }
  }

  /** Sends the request on, in the proxy's own words, and waits for the head of the answer. */
  private ask(visit: Visit, request: IncomingMessage, { rule, target, upstream }: Route): Promise<IncomingMessage> {
    const { caps } = this.options.grant;
    const secure = rule.upgrade !== undefined;
    const port = secure ? rule.port : target.port;
    const headers: Record<string, string | string[]> = {};
    for (const [name, value] of endToEnd(request.rawHeaders)) {
      const before = headers[name];
      headers[name] = before === undefined ? value : [before, value].flat();
    }
    headers.host = port === (secure ? 443 : 80) ? target.host : `${target.host}:${port}`;
    if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked';
    if (rule.headers) {
      // What is compressed cannot be searched for the secret.
      headers['accept-encoding'] = 'identity';
      for (const [name, text] of Object.entries(rule.headers)) {
        headers[name.toLowerCase()] = fillSecrets(text, this.options.secrets);
      }
    }
    const { pathname, search } = new URL(request.url ?? '');
    const outgoing = httpRequest({
      method: visit.method,
      path: `${pathname}${search}`,
      headers,
      setHost: false,
      createConnection: () => upstream,
      maxHeaderSize: caps.headerBytes,
      signal: visit.abort.signal,
    });
    upstream.setTimeout(caps.idleMs, () => visit.break(tooSlow(`nothing for ${caps.idleMs} ms`)));
    // Whoever breaks off may do so twice; the first time is enough.
    outgoing.on('error', () => {});
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve).once('error', reject);
      outgoing.once('upgrade', () => reject(new Error('another protocol')));
    });
    // An upstream may well answer before it has read everything.
    pipeline(request, this.metered(visit, 'out'), outgoing).catch(() => {});
    return answered;
  }

  private async tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const visit = this.begin('CONNECT');
    for (const end of ['error', 'close']) client.on(end, () => visit.break(gone()));
    let status = 0;
    try {
      const { upstream } = await this.reach(visit, request);
      const { idleMs } = this.options.grant.caps;
      upstream.setTimeout(idleMs, () => visit.break(tooSlow(`nothing for ${idleMs} ms`)));
      upstream.on('error', (error) => visit.break(error));
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      status = 200;
      this.assertRoom(head.length);
      if (head.length > 0) upstream.write(head);
      await Promise.all([
        pipeline(client, this.metered(visit, 'out'), upstream),
        pipeline(upstream, this.metered(visit, 'in'), client),
      ]);
      this.end(visit, status);
    } catch (error) {
      const refusal = visit.cause(error);
      if (status === 0) this.refuseBare('CONNECT', client, refusal, visit);
      else client.destroy();
      this.end(visit, status, refusal.code === 'EGRESS.GONE' ? undefined : refusal);
    }
  }

  /** For callers that have no response object: the answer is written by hand, and the connection ends with it. */
  private refuseBare(method: string | undefined, socket: Duplex, refusal: Refusal, visit = this.begin(method)): void {
    const body = explain(refusal);
    const fields = { ...explained(refusal), 'content-length': Buffer.byteLength(body) };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
    socket.on('error', () => {});
    if (socket.writable) socket.end([`HTTP/1.1 ${refusal.status} Refused`, ...lines, '', body].join('\r\n'));
    else socket.destroy();
    this.end(visit, refusal.status, refusal);
  }

  private misread(error: NodeJS.ErrnoException, socket: Duplex): void {
    // Once the proxy has said its last word, or the agent has gone, there is nothing left to misread.
    if (!/^(HPE_|ERR_HTTP_REQUEST_TIMEOUT)/.test(error.code ?? '') || socket.writableEnded || !socket.writable) {
      socket.destroy();
      return;
    }
    const refusal =
      error.code === 'HPE_HEADER_OVERFLOW'
        ? new Refusal('HEADERS_TOO_LARGE', 431, `A head has at most ${this.options.grant.caps.headerBytes} bytes.`)
        : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
          ? tooSlow('the head did not arrive')
          : new Refusal('BAD_REQUEST', 400, `That is no request of HTTP/1.1 (${error.code ?? 'unknown'}).`);
    this.refuseBare('', socket, refusal);
  }

  private total(key: 'bytesIn' | 'bytesOut'): number {
    return [...this.visits].reduce((sum, visit) => sum + visit[key], this.ended[key]);
  }

  private assertRoom(moreBytes: number): void {
    const { bytesOut } = this.options.grant.caps;
    if (this.total('bytesOut') + moreBytes > bytesOut) {
      throw new Refusal('BYTES_OUT', 413, `No more than ${bytesOut} bytes may be sent in a match.`);
    }
    this.assertIn();
  }

  private assertIn(): void {
    const { bytesIn } = this.options.grant.caps;
    if (this.total('bytesIn') > bytesIn) {
      throw new Refusal('BYTES_IN', 429, `No more than ${bytesIn} bytes may be received in a match.`);
    }
  }

  /** Passes on what goes this way until it is too much. */
  private metered(visit: Visit, way: 'in' | 'out'): Transform {
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        try {
          if (way === 'out') this.assertRoom(chunk.length);
          else this.assertIn();
          done(null, chunk);
        } catch (error) {
          visit.break(error);
          done(error as Error);
        }
      },
    });
  }

  private redact(text: string): string {
    return blot(Buffer.from(text, 'latin1'), this.secretForms).toString('latin1');
  }
}

function opened(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(event, () => {
      // From here on, what goes wrong is heard of by whoever reads and writes.
      socket.on('error', () => {});
      resolve();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
  });
}
