import { execFileSync } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { open } from 'lmdb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../projections/sinks/database.js';
import { PostgresSink } from '../../projections/sinks/postgres.js';
import { views } from '../../projections/views.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { startPostgres } from '../engines/postgres.js';
import { run, runWith, type Served, serveWith, temporaryFolder } from './agon.contract.js';
import made from './fixtures/made.json' with { type: 'json' };

/** What an earlier version left behind; the README beside it says how it came about. */
const fixtures = join(import.meta.dirname, 'fixtures');
const folder = temporaryFolder();
const data = join(folder.path, 'data');
/** Time stands still at an hour after that: leases have run out, and nothing is too old to be played. */
const now = new Date(Date.parse(made.lastTime) + 3_600_000).toISOString();

interface Delivery {
  readonly id: string;
  readonly type: string;
  readonly genuine: boolean;
}

const deliveries: Delivery[] = [];
let receiver: Server;
let arena: Served | undefined;

beforeAll(async () => {
  execFileSync('tar', ['-xzf', join(fixtures, 'data.tar.gz'), '-C', folder.path]);
  receiver = createServer(async (request, response) => {
    const { 'webhook-id': id = '', 'webhook-timestamp': at = '', 'webhook-signature': signature } = request.headers;
    const body = await text(request);
    const key = Buffer.from(made.webhook.secret.replace('whsec_', ''), 'base64');
    const expected = `v1,${createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64')}`;
    deliveries.push({ id: `${id}`, type: JSON.parse(body).type, genuine: signature === expected });
    response.end();
  });
  await new Promise<void>((resolve) => receiver.listen(made.webhook.port, '127.0.0.1', resolve));
});

afterAll(async () => {
  await arena?.stop('SIGKILL');
  receiver?.close();
  folder.remove();
});

const agon = (...args: string[]) => agonWith({}, ...args);

const agonWith = async (env: Record<string, string>, ...args: string[]) => {
  const { code, stdout, stderr } = await runWith(env, ...args, '--data', data, '--json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
};

const started = (): Served => {
  if (!arena) throw new Error('The arena did not start.');
  return arena;
};

const operator = () => ({ authorization: `Bearer ${readFileSync(join(data, 'operator.token'), 'utf8').trim()}` });

async function ask<T>(query: string, headers: Record<string, string> = operator()): Promise<T> {
  const { data: answer, errors } = await started().graphql<T>(query, {}, headers);
  expect(errors ?? []).toEqual([]);
  return answer;
}

/** Events as the command line prints them, one a line. */
async function tail(...args: string[]): Promise<{ readonly type: string; readonly position: number }[]> {
  const { stdout } = await run('log', 'tail', ...args, '--data', data, '--json');
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const lastPosition = async () => (await tail('-n', '1'))[0]?.position;

/** Of a folder that nobody runs on: how far each consumer group has come. */
function checkpoints(): Record<string, number> {
  const env = open<number, [string, string]>({ path: join(data, 'bus.mdb'), noSubdir: true, encoding: 'json' });
  const range = env.getRange({ start: ['position', ''], end: ['position', '\uffff'] });
  const found = [...range].map(({ key: [, group], value }) => [group, value] as const);
  env.close();
  return Object.fromEntries(found);
}

/** The digest of the first events, as `agon log verify` makes it of all. */
async function logHashOf(count: number): Promise<string> {
  const store = await LmdbEventStore.open(join(data, 'log'), { readOnly: true });
  const digest = createHash('sha256');
  for (let after = 0; after < count; ) {
    const events = await store.readAll({ after, limit: Math.min(1_000, count - after) });
    for (const { hash } of events) digest.update(hash);
    after = events.at(-1)?.position ?? count;
  }
  await store.close();
  return digest.digest('hex');
}

const plain = (row: object): Record<string, unknown> =>
  JSON.parse(JSON.stringify(row, (_key, value) => (typeof value === 'bigint' ? `${value}n` : value)));

/** Of these the earlier version kept a place that nobody needs: a key that is revoked already opens no stream. */
const HEARS_NEWS_ALONE = ['play.revocations'];

describe.sequential('a data folder of an earlier version', { timeout: 300_000 }, () => {
  it('holds a log that verifies', async () => {
    expect(await agon('log', 'verify')).toEqual(made.verified);
  });

  it('gives every view the rows that it had', async () => {
    const lines = gunzipSync(readFileSync(join(fixtures, 'rows.jsonl.gz')))
      .toString()
      .trim()
      .split('\n');
    const had = lines.map((line) => JSON.parse(line) as { view: string; table: string; row: object });
    const viewsThen = [...new Set(had.map(({ view }) => view))];
    expect(views.map(({ name }) => name)).toEqual(expect.arrayContaining(viewsThen));
    const server = await startPostgres({ folder: join(folder.path, 'beside') });
    const database = await openDatabase(server.url);
    try {
      for (const view of viewsThen) {
        const rebuilt = await agonWith({ DATABASE_URL: server.url }, 'projections', 'rebuild', view);
        expect(rebuilt).toMatchObject({ view, rebuilt: true, lagEvents: 0, deadLetters: 0 });
      }
      const sink = new PostgresSink(database);
      for (const { name, tables } of views) {
        for (const table of tables) {
          const rows = had.filter((each) => each.view === name && each.table === table.name).map(({ row }) => row);
          // Columns may have been added since; none may be gone, and no row more or less.
          expect((await sink.rows(table)).map(plain), `${name}.${table.name}`).toMatchObject(rows);
        }
      }
    } finally {
      await database.destroy();
      await server.stop();
    }
  });

  it('is started on, and its unfinished matches go on to their end', async () => {
    const env = { AGON_NOW: now, AGON_WEBHOOK_PRIVATE: 'true' };
    const flags = ['--no-ladder', '--cells', '1', '--stripe-sandbox', '0', '--grpc-port', '0', '--play-port', '0'];
    arena = await serveWith(env, data, ...flags);
    for (const [was, matchId] of Object.entries(made.unfinished)) {
      const status = async () =>
        (await ask<{ match: { status: string } }>(`{ match(matchId: "${matchId}") { status } }`)).match.status;
      await expect.poll(status, { timeout: 120_000, interval: 200, message: was }).toBe('settled');
    }
    // The claim of the runner that was killed has run out, and another one was made.
    const history = await tail('--stream', `match-${made.unfinished.leased}`, '-n', '500');
    expect(history.filter(({ type }) => type === 'MatchClaimed')).toHaveLength(2);
    const letters = await ask<{ busLetters: unknown[] }>('{ busLetters { group eventId } }');
    expect(letters.busLetters).toEqual([]);
  });

  it('knows commands that were carried out before', async () => {
    const { key, mutation, receipt } = made.repeated;
    const before = await lastPosition();
    const again = await ask<object>(mutation, { ...operator(), 'idempotency-key': key });
    expect(again).toEqual({ grantCredits: { ...receipt, repeated: true } });
    expect(await lastPosition()).toBe(before);
    const other = await started().graphql(
      mutation.replace('50000', '50001'),
      {},
      {
        ...operator(),
        'idempotency-key': key,
      },
    );
    expect(other.errors?.[0]?.extensions?.code).toBe('COMMAND.KEY_REUSED');
  });

  it('lets in whom it knew, and nobody else', async () => {
    const { url } = started();
    const login = async (password: string) => {
      const body = JSON.stringify({ accountId: made.person.accountId, password });
      const headers = { 'content-type': 'application/json' };
      return (await fetch(`${url}/v1/auth/login`, { method: 'POST', headers, body })).status;
    };
    expect(await login(made.person.password)).toBe(200);
    expect(await login(`${made.person.password}?`)).toBe(401);
    const me = async (key: string) => {
      const response = await fetch(`${url}/v1/auth/me`, { headers: { authorization: `Bearer ${key}` } });
      return [response.status, ((await response.json()) as { accountId?: string }).accountId];
    };
    expect(await me(made.apiKey.key)).toEqual([200, 'ada']);
    expect(await me(made.revokedKey.key)).toEqual([401, undefined]);
  });

  it('tells no webhook twice, and delivers what had failed when it is asked to', async () => {
    const { webhookId, told, failedDelivery } = made.webhook;
    const settled = () => deliveries.filter(({ type }) => type === 'MatchSettled').length;
    await expect.poll(settled, { timeout: 60_000 }).toBe(Object.keys(made.unfinished).length);
    await agon('webhook', 'replay', '*', webhookId);
    await expect.poll(() => deliveries.map(({ id }) => id), { timeout: 60_000 }).toContain(failedDelivery);
    const ids = deliveries.map(({ id }) => id);
    expect(ids.filter((id) => told.includes(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(deliveries.filter(({ genuine }) => !genuine)).toEqual([]);
  });

  it('goes on with the consumer groups that it had, behind a log of which nothing was changed', async () => {
    expect((await agon('ledger', 'check')).good).toBe(true);
    expect(await started().stop()).toBe(0);
    arena = undefined;
    const after = checkpoints();
    expect(Object.keys(after).sort()).toEqual(expect.arrayContaining(Object.keys(made.groups).sort()));
    for (const group of Object.keys(made.groups).filter((name) => !HEARS_NEWS_ALONE.includes(name))) {
      expect([group, (after[group] ?? 0) > made.verified.events]).toEqual([group, true]);
    }
    expect(Object.keys(after).filter((group) => group.startsWith('webhook.'))).toHaveLength(1);
    expect(await logHashOf(made.verified.events)).toBe(made.verified.logHash);
    expect((await agon('log', 'verify')).verified).toBe(true);
    expect(existsSync(join(data, 'lock.json'))).toBe(false);
  });
});
