import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { DATABASE } from '../../projections/sinks/clickhouse.js';
import { sameToken } from '../../services/runtime/data-folder.js';
import { contentTypeOf, readOnlyStatement, refuse, settingsOf } from './chdb-rules.js';

const BODY_BYTES_MAX = 256 * 1024 * 1024;
const READERS_MAX = 2;
const WAITING_MAX = 64;

export interface ChdbHttp {
  /** Opens a session of its own on the engine's folder. */
  readonly open: () => ClickHouseClient;
  /** Whoever has it may write, as the user `writer`; everybody else reads. */
  readonly secret: string;
}

interface Statement {
  readonly url: URL;
  readonly sql: string;
  readonly values: string | undefined;
  readonly writes: boolean;
}

/** ClickHouse's HTTP interface before the embedded engine: what clients and Grafana use of it. */
export function chdbServer({ open, secret }: ChdbHttp): Server {
  const readers = new Gate(READERS_MAX, WAITING_MAX);
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    assertLocal(request.headers.host);
    if (url.pathname === '/ping' || url.pathname === '/replicas_status') return response.end('Ok.\n');
    if (url.pathname !== '/') throw refuse(1000, 'UNKNOWN_PATH', `There is no ${url.pathname} here.`, 404);
    const writes = roleOf(request, url, secret) === 'writer';
    const body = await bodyOf(request);
    const given = url.searchParams.get('query');
    if (given === null && body.length === 0) return response.end('Ok.\n');
    const asked = given === null ? { sql: body, values: undefined } : { sql: given, values: body || undefined };
    const run = () => carryOut(open(), { ...asked, url, writes }, request, response);
    return writes ? run() : readers.pass(run);
  };
  // A connection stays until its client ends it: one that the server ends may be in use again at that very moment.
  return createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
    answer(request, response).catch((error) => fail(response, error));
  });
}

/** A session for one statement: its settings die with it. */
async function carryOut(
  session: ClickHouseClient,
  asked: Statement,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { url, writes, values } = asked;
  try {
    const sql = writes ? asked.sql : readOnlyStatement(await normalForm(session, withBody(asked)));
    const format =
      url.searchParams.get('default_format') ?? `${request.headers['x-clickhouse-format'] ?? 'TabSeparated'}`;
    const database = url.searchParams.get('database') ?? DATABASE;
    const preparation = [
      // Before the first migration there is no database of ours yet.
      ...(writes ? [] : [`USE \`${database.replaceAll('`', '')}\``]),
      ...settingsOf(url.searchParams, writes).map(([name, value]) => `SET ${name} = ${quoted(value)}`),
      ...(writes ? [] : ['SET readonly = 1']),
    ];
    if (preparation.length > 0) await session.command({ query: preparation.join('; ') });
    const startedMs = performance.now();
    const clickhouse_settings: Record<string, string> = { default_format: format };
    const { stream, query_id } =
      writes && values !== undefined
        ? await session.exec({ query: sql, values: Readable.from([values]), clickhouse_settings })
        : await session.exec({ query: sql, clickhouse_settings });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    const used = / FORMAT (\w+)$/.exec(sql)?.[1] ?? format;
    const elapsed = Math.round((performance.now() - startedMs) * 1e6);
    response.setHeader('Content-Type', contentTypeOf(used));
    response.setHeader('X-ClickHouse-Format', used);
    response.setHeader('X-ClickHouse-Timezone', 'UTC');
    response.setHeader('X-ClickHouse-Query-Id', url.searchParams.get('query_id') ?? query_id);
    response.setHeader('X-ClickHouse-Summary', JSON.stringify({ elapsed_ns: `${elapsed}` }));
    const bytes = Buffer.concat(chunks);
    const zipped =
      url.searchParams.get('enable_http_compression') === '1' &&
      /\bgzip\b/.test(`${request.headers['accept-encoding']}`);
    if (zipped) response.setHeader('Content-Encoding', 'gzip');
    response.end(zipped ? gzipSync(bytes) : bytes);
  } finally {
    await session.close();
  }
}

/** Over HTTP a statement may be cut in two: what the body says goes on where the parameter ended. */
const withBody = ({ sql, values }: Statement) => (values === undefined ? sql : `${sql}\n${values}`);

/** What the engine's own parser understands it to be: one statement, without comments. That form is what is run. */
async function normalForm(session: ClickHouseClient, sql: string): Promise<string> {
  const query = `SELECT formatQuerySingleLine(${quoted(sql)}) AS sql`;
  const rows = await (await session.query({ query, format: 'JSONEachRow' })).json<{ sql: string }>();
  return rows[0]?.sql ?? '';
}

const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function roleOf(request: IncomingMessage, url: URL, secret: string): 'reader' | 'writer' {
  const [, basic] = /^Basic (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  const [basicUser, ...rest] = basic ? Buffer.from(basic, 'base64').toString().split(':') : [];
  const header = (name: string) => request.headers[name] as string | undefined;
  const user = header('x-clickhouse-user') ?? basicUser ?? url.searchParams.get('user') ?? 'default';
  const password = header('x-clickhouse-key') ?? (basic ? rest.join(':') : url.searchParams.get('password')) ?? '';
  if (user === 'writer' && sameToken(password, secret)) return 'writer';
  if (['', 'default', 'reader'].includes(user) && password === '') return 'reader';
  const why = `${user}: Authentication failed: password is incorrect, or there is no user with such name.`;
  throw refuse(516, 'AUTHENTICATION_FAILED', `${why} Read as "default" or "reader", without a password.`, 403);
}

/** A page in somebody's browser can be made to speak to us under another name; it cannot say that it is us. */
function assertLocal(host: string | undefined): void {
  if (/^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(host ?? '')) return;
  throw refuse(497, 'ACCESS_DENIED', `This is 127.0.0.1, not ${host}.`, 403);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX)
      throw refuse(62, 'QUERY_IS_TOO_LARGE', `A request has at most ${BODY_BYTES_MAX} bytes.`);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const encoding = request.headers['content-encoding'];
  if (encoding === undefined || encoding === 'identity') return body.toString();
  if (encoding === 'gzip') return gunzipSync(body, { maxOutputLength: BODY_BYTES_MAX }).toString();
  throw refuse(48, 'NOT_IMPLEMENTED', `Content-Encoding ${encoding} is not taken here; gzip is.`, 501);
}

/** As ClickHouse words it, so that every client understands. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy();
  const { code = '1002', type = 'UNKNOWN_EXCEPTION' } = error as ClickHouseError;
  const known = error instanceof ClickHouseError || /^\d+$/.test(code);
  const message = error instanceof Error ? error.message.trim() : String(error);
  const number = known ? code : '1002';
  response.statusCode = (error as { httpStatus?: number }).httpStatus ?? statusByCode[number] ?? 400;
  response.setHeader('X-ClickHouse-Exception-Code', number);
  response.setHeader('Content-Type', 'text/plain; charset=UTF-8');
  response.end(`Code: ${number}. DB::Exception: ${message} (${known ? type : 'UNKNOWN_EXCEPTION'})\n`);
}

const statusByCode: Readonly<Record<string, number>> = {
  60: 404,
  81: 404,
  159: 408,
  164: 403,
  241: 500,
  497: 403,
  516: 403,
  1002: 500,
};

/** Lets so many through at a time, and lets so many wait. */
class Gate {
  private inside = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly room: number,
    private readonly queue: number,
  ) {}

  async pass<T>(run: () => Promise<T>): Promise<T> {
    if (this.inside >= this.room) {
      if (this.waiting.length >= this.queue) {
        throw refuse(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', `${this.queue} queries wait already.`, 503);
      }
      await new Promise<void>((turn) => this.waiting.push(turn));
    } else this.inside++;
    try {
      return await run();
    } finally {
      // The place goes to the next in line, or is free.
      const next = this.waiting.shift();
      if (next) next();
      else this.inside--;
    }
  }
}
