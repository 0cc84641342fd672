import { hash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgonError, type Clock, type Ids, randomIds, systemClock } from '../../services/kernel/index.js';
import { ApiError, answer, type Deps, formOf } from './api.js';
import { Books, type Thing } from './books.js';
import { chance, dispatcherOf, KIND, type Mischief, type WebhookDispatcher } from './deliver.js';
import { type Happenings, happeningsOf, Impossible } from './happenings.js';
import { checkoutPage, dashboardPage, onboardingPage } from './pages.js';

const BODY_BYTES_MAX = 64 * 1024;
const KEY_LIFE_S = 24 * 3600;
const KEY_LENGTH_MAX = 255;
const LOOPBACK = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/;

export interface SandboxOptions {
  /** 0 takes a free port. */
  readonly port?: number;
  /** What the stand-in knows stays here, over restarts; in memory alone when left out. */
  readonly file?: string;
  readonly secretKey: string;
  readonly webhookSecret: string;
  /** Where webhooks go. Asked for at each delivery, since the receiver may not be up yet. */
  webhookUrl(): string;
  readonly mischief?: Mischief;
  /** The share of API calls that are carried out and whose answer is then lost on the way, from 0 to 1. */
  readonly lostCalls?: number;
  readonly clock?: Clock;
  readonly ids?: Ids;
}

export interface Sandbox {
  readonly url: string;
  /** What people and banks do on Stripe's side. */
  readonly happen: Happenings;
  readonly books: Books;
  readonly dispatcher: WebhookDispatcher;
  stop(): Promise<void>;
}

/** Starts a server on this machine alone that speaks the parts of Stripe's API that the product uses. */
export async function startStripeSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { clock = systemClock, ids = randomIds, mischief = KIND } = options;
  const books = new Books(clock, ids, options.file);
  const dispatcher = dispatcherOf(books, { url: options.webhookUrl, secret: options.webhookSecret }, mischief);
  const emit = (type: string, object: Thing) => {
    const data = { object };
    dispatcher.send(books.make('evt', 'event', { type, data, api_version: '2026-10-28.endive', pending_webhooks: 1 }));
  };
  const happenings = happeningsOf(books, emit);
  // Whatever happens is on disk before anybody hears of it.
  const happen = Object.fromEntries(
    Object.entries(happenings).map(([name, act]) => [
      name,
      (...args: never[]) => {
        const thing = (act as (...args: never[]) => Thing)(...args);
        books.save();
        return thing;
      },
    ]),
  ) as unknown as Happenings;
  const service = { books, emit, happen, options };
  const server = createServer((request, response) => {
    serve(request, response, service).catch((error: unknown) => {
      const { status, body } = problemOf(error);
      if (!response.headersSent) json(response, status, body);
      else response.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(new AgonError('NET.CANNOT_LISTEN', `The stand-in: ${error.message}.`)));
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    happen,
    books,
    dispatcher,
    stop: async () => {
      await dispatcher.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Service extends Deps {
  readonly options: SandboxOptions;
}

async function serve(request: IncomingMessage, response: ServerResponse, service: Service): Promise<void> {
  const { host = '', origin } = request.headers;
  // A page of somebody else's in the same browser must not press our buttons.
  if (!LOOPBACK.test(host) || (origin !== undefined && origin !== 'null' && origin !== `http://${host}`)) {
    throw new ApiError(403, 'invalid_request_error', 'This server is for this machine alone.');
  }
  const url = new URL(request.url ?? '/', `http://${host}`);
  const body = await bodyOf(request);
  if (url.pathname.startsWith('/v1/')) api(request, response, url, body, service);
  else show(response, people(request.method ?? 'GET', url, body, service));
}

function api(
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  body: string,
  { books, emit, happen, options }: Service,
): void {
  const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  if (given !== options.secretKey) throw new ApiError(401, 'invalid_request_error', 'Invalid API Key provided.');
  const method = request.method ?? 'GET';
  const params = formOf(method === 'POST' ? body : url.search.slice(1));
  const run = () => answer({ method, path: url.pathname, params, origin: url.origin }, { books, emit, happen });
  const key = method === 'POST' ? request.headers['idempotency-key']?.toString() : undefined;
  const { status, said, replayed } = key === undefined ? once(run) : keyed(books, key, requestOf(url, body), run);
  books.save();
  const { lostCalls = 0, mischief = KIND } = options;
  // Lost the first time alone: what is asked again with the same key is told what was done.
  if (key !== undefined && !replayed && chance(mischief.seed, key, 'call') < lostCalls) {
    request.socket.destroy();
    return;
  }
  json(response, status, said, replayed ? { 'idempotent-replayed': 'true' } : {});
}

const requestOf = (url: URL, body: string) => hash('sha256', `${url.pathname}\n${body}`);

interface Reply {
  readonly status: number;
  readonly said: unknown;
  readonly replayed: boolean;
}

const once = (run: () => unknown): Reply => ({ status: 200, said: run(), replayed: false });

/** Stripe's rules: the first answer is kept for a day, also a failure, but not one of parameters that were wrong. */
function keyed(books: Books, key: string, request: string, run: () => unknown): Reply {
  if (key.length > KEY_LENGTH_MAX) throw new ApiError(400, 'idempotency_error', 'The idempotency key is too long.');
  const before = books.pages.keys[key];
  if (before && books.nowS() - before.atS < KEY_LIFE_S) {
    if (before.request !== request) {
      const message = `Keys for idempotent requests can only be used with the same parameters they were first used with (${key}).`;
      throw new ApiError(400, 'idempotency_error', message);
    }
    return { status: before.status, said: before.body, replayed: true };
  }
  const keep = (status: number, body: unknown): Reply => {
    books.pages.keys[key] = { request, status, body, atS: books.nowS() };
    return { status, said: body, replayed: false };
  };
  try {
    return keep(200, run());
  } catch (error) {
    if (!(error instanceof ApiError) || !error.hasRun) throw error;
    const { status, body } = problemOf(error);
    return keep(status, body);
  }
}

/** A page, or where to go from here. */
type Page = { readonly page: string } | { readonly goTo: string };

/** What people see and press: the checkout, the onboarding, and a small dashboard. */
function people(method: string, url: URL, body: string, { books, happen }: Service): Page {
  const [, first = '', id = '', action = ''] = url.pathname.split('/');
  const form = new URLSearchParams(body);
  const field = (name: string) => form.get(name) ?? '';
  const dashboard = { goTo: '/dashboard' };
  switch (first === 'pay' || first === 'onboard' ? `${method} ${first}/${action}` : `${method} ${url.pathname}`) {
    case 'GET pay/':
      return { page: checkoutPage(seen(books, id), url.searchParams.has('declined')) };
    case 'POST pay/pay':
      return { goTo: String(happen.pay(seen(books, id).id).success_url) };
    case 'POST pay/decline':
      return { goTo: `/pay/${happen.decline(seen(books, id).id).id}?declined` };
    case 'GET onboard/':
      return { page: onboardingPage(seen(books, id), url.searchParams.get('return') ?? '/') };
    case 'POST onboard/complete':
      happen.onboard(seen(books, id).id);
      return { goTo: field('return') || '/' };
    case 'GET /':
    case 'GET /dashboard':
      return { page: dashboardPage(books) };
    case 'POST /dashboard/refund': {
      const { id: intent, amount } = seen(books, field('payment_intent'));
      happen.refund(intent, Number(field('amount') || amount), {}, form.has('fails'));
      return dashboard;
    }
    case 'POST /dashboard/reverse': {
      const { id: transfer, amount, amount_reversed: before } = seen(books, field('transfer'));
      happen.reverse(transfer, Number(field('amount') || Number(amount) - Number(before)));
      return dashboard;
    }
    case 'POST /dashboard/dispute':
      happen.dispute(field('payment_intent'));
      return dashboard;
    case 'POST /dashboard/close-dispute':
      happen.closeDispute(field('dispute'), field('outcome') === 'won' ? 'won' : 'lost');
      return dashboard;
    default:
      throw new ApiError(404, 'invalid_request_error', `There is no page ${url.pathname}.`);
  }
}

function seen(books: Books, id: string): Thing {
  const thing = books.find(id);
  if (!thing) throw new ApiError(404, 'invalid_request_error', `There is no ${id} here.`);
  return thing;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new ApiError(413, 'invalid_request_error', 'The request is too large.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function problemOf(error: unknown): { status: number; body: unknown } {
  if (error instanceof Impossible) return problemOf(new ApiError(400, 'invalid_request_error', error.message));
  if (!(error instanceof ApiError))
    return { status: 500, body: { error: { type: 'api_error', message: String(error) } } };
  const { status, type, message, code, param } = error;
  return { status, body: { error: { type, message, ...(code ? { code } : {}), ...(param ? { param } : {}) } } };
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function show(response: ServerResponse, page: Page): void {
  if ('goTo' in page) {
    response.writeHead(303, { location: page.goTo }).end();
    return;
  }
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy };
  response.writeHead(200, headers).end(page.page);
}
