import type { Books, Thing } from './books.js';
import { type Emit, type Happenings, Impossible } from './happenings.js';

/** Parameters of a form, as they nest: `a[b][0]=c` is `{ a: { b: { 0: 'c' } } }`. */
interface Params {
  readonly [name: string]: string | Params;
}

/** An error as Stripe answers it. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
    readonly code?: string,
    readonly param?: string,
    /** Parameters that are not understood are refused before anything runs, and leave the idempotency key free. */
    readonly hasRun = false,
  ) {
    super(message);
  }
}

const invalid = (message: string, param: string, code = 'parameter_invalid') =>
  new ApiError(400, 'invalid_request_error', message, code, param);
const missing = (param: string) => invalid(`Missing required param: ${param}.`, param, 'parameter_missing');
const nothing = (kind: string, id: string) =>
  new ApiError(404, 'invalid_request_error', `No such ${kind}: '${id}'`, 'resource_missing', 'id');

export function formOf(text: string): Params {
  const root: Record<string, unknown> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    const path = name.replaceAll(']', '').split('[');
    const last = path.pop() ?? '';
    let at = root;
    for (const part of path) {
      at[part] ??= Object.create(null);
      if (typeof at[part] !== 'object') throw invalid(`Invalid ${name}`, name);
      at = at[part] as Record<string, unknown>;
    }
    at[last] = value;
  }
  return root as unknown as Params;
}

const nested = (params: Params, name: string): Params => {
  const value = params[name];
  return typeof value === 'object' ? value : {};
};
const text = (params: Params, name: string): string => {
  const value = params[name];
  if (typeof value !== 'string' || value === '') throw missing(name);
  return value;
};
const amountIn = (params: Params, name: string): number => {
  const value = Number(text(params, name));
  if (!Number.isInteger(value) || value < 1)
    throw invalid(`Invalid positive integer`, name, 'parameter_invalid_integer');
  return value;
};
const metadataIn = (params: Params): Record<string, string> =>
  Object.fromEntries(Object.entries(nested(params, 'metadata')).map(([key, value]) => [key, String(value)]));

interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly params: Params;
  /** Where the stand-in itself can be reached, for the pages that it sends people to. */
  readonly origin: string;
}

export interface Deps {
  readonly books: Books;
  readonly emit: Emit;
  readonly happen: Happenings;
}

type Route = (request: ApiRequest, id: string, deps: Deps) => unknown;

/** The parts of Stripe's API that the product speaks, and those that look at what came of it. */
const routes: readonly (readonly [string, RegExp, Route])[] = [
  ['POST', /^\/v1\/checkout\/sessions$/, createSession],
  ['GET', /^\/v1\/checkout\/sessions\/(\w+)$/, retrieve('checkout.session')],
  ['POST', /^\/v1\/checkout\/sessions\/(\w+)\/expire$/, (_request, id, { happen }) => ran(() => happen.expire(id))],
  ['GET', /^\/v1\/payment_intents$/, listOf('payment_intent', [])],
  ['GET', /^\/v1\/payment_intents\/(\w+)$/, retrieve('payment_intent')],
  ['POST', /^\/v1\/accounts$/, createAccount],
  ['GET', /^\/v1\/accounts\/(\w+)$/, retrieve('account')],
  ['POST', /^\/v1\/account_links$/, createAccountLink],
  ['POST', /^\/v1\/transfers$/, createTransfer],
  ['GET', /^\/v1\/transfers$/, listOf('transfer', ['transfer_group', 'destination'])],
  ['GET', /^\/v1\/transfers\/(\w+)$/, retrieve('transfer')],
  ['POST', /^\/v1\/transfers\/(\w+)\/reversals$/, reverseTransfer],
  ['GET', /^\/v1\/invoice_payments$/, listInvoicePayments],
  ['POST', /^\/v1\/refunds$/, createRefund],
  ['GET', /^\/v1\/refunds$/, listOf('refund', ['payment_intent', 'charge'])],
  ['GET', /^\/v1\/subscriptions\/(\w+)$/, retrieve('subscription')],
  ['DELETE', /^\/v1\/subscriptions\/(\w+)$/, cancelSubscription],
  ['GET', /^\/v1\/disputes$/, listOf('dispute', ['payment_intent', 'charge'])],
  ['GET', /^\/v1\/events\/(\w+)$/, retrieve('event')],
];

export function answer(request: ApiRequest, deps: Deps): unknown {
  for (const [method, pattern, route] of routes) {
    const match = pattern.exec(request.path);
    if (match && method === request.method) return route(request, match[1] ?? '', deps);
  }
  throw new ApiError(404, 'invalid_request_error', `Unrecognized request URL (${request.method}: ${request.path}).`);
}

/** What fails while it runs is an answer that the idempotency key keeps. */
function ran<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof Impossible)) throw error;
    throw new ApiError(400, 'invalid_request_error', error.message, undefined, undefined, true);
  }
}

function retrieve(object: string): Route {
  return (_request, id, { books }) => {
    const thing = books.find(id);
    if (thing?.object !== object) throw nothing(object, id);
    return thing;
  };
}

function listOf(object: string, filters: readonly string[]): Route {
  return ({ params, path }, _id, { books }) => {
    const limit = params.limit === undefined ? 10 : amountIn(params, 'limit');
    if (limit > 100) throw invalid('limit is 1 to 100', 'limit');
    const wanted = books
      .list(object)
      .filter((thing) => filters.every((name) => params[name] === undefined || thing[name] === params[name]));
    const after = params.starting_after;
    const from = after === undefined ? 0 : wanted.findIndex(({ id }) => id === after) + 1;
    if (after !== undefined && from === 0) throw nothing(object, String(after));
    return {
      object: 'list',
      url: path,
      has_more: wanted.length > from + limit,
      data: wanted.slice(from, from + limit),
    };
  };
}

function createSession({ params, origin }: ApiRequest, _id: string, { books }: Deps): Thing {
  const mode = text(params, 'mode');
  if (mode !== 'payment' && mode !== 'subscription') throw invalid(`Invalid mode: ${mode}`, 'mode');
  const lines = Object.values(nested(params, 'line_items')).filter((line) => typeof line === 'object');
  if (lines.length === 0) throw missing('line_items');
  const prices = lines.map((line) => ({ price: nested(line, 'price_data'), quantity: amountIn(line, 'quantity') }));
  for (const { price } of prices) {
    text(nested(price, 'product_data'), 'name');
    if (mode === 'subscription') text(nested(price, 'recurring'), 'interval');
  }
  const total = prices.reduce((sum, { price, quantity }) => sum + amountIn(price, 'unit_amount') * quantity, 0);
  const id = books.newId('cs_test');
  return books.make('cs_test', 'checkout.session', {
    id,
    mode,
    amount_total: total,
    currency: text(prices[0]?.price ?? {}, 'currency'),
    success_url: text(params, 'success_url'),
    cancel_url: params.cancel_url ?? null,
    status: 'open',
    payment_status: 'unpaid',
    payment_intent: null,
    subscription: null,
    client_reference_id: params.client_reference_id ?? null,
    metadata: metadataIn(params),
    title: text(nested(prices[0]?.price ?? {}, 'product_data'), 'name'),
    payment_intent_data: { metadata: metadataIn(nested(params, 'payment_intent_data')) },
    subscription_data: { metadata: metadataIn(nested(params, 'subscription_data')) },
    url: `${origin}/pay/${id}`,
  });
}

function createAccount({ params }: ApiRequest, _id: string, { books, emit }: Deps): Thing {
  const account = books.make('acct', 'account', {
    metadata: metadataIn(params),
    country: params.country ?? 'US',
    capabilities: { transfers: 'inactive' },
    payouts_enabled: false,
    charges_enabled: false,
    details_submitted: false,
  });
  emit('account.updated', account);
  return account;
}

function createAccountLink({ params, origin }: ApiRequest, _id: string, { books }: Deps): unknown {
  const id = text(params, 'account');
  if (books.find(id)?.object !== 'account') throw nothing('account', id);
  text(params, 'type');
  const back = encodeURIComponent(text(params, 'return_url'));
  const expires_at = books.nowS() + 300;
  return { object: 'account_link', created: books.nowS(), expires_at, url: `${origin}/onboard/${id}?return=${back}` };
}

function createTransfer({ params }: ApiRequest, _id: string, { books, emit }: Deps): Thing {
  const [amount, currency, destination] = [
    amountIn(params, 'amount'),
    text(params, 'currency'),
    text(params, 'destination'),
  ];
  const account = books.find(destination);
  if (account?.object !== 'account') throw nothing('destination', destination);
  const refuse = (message: string, code: string) =>
    new ApiError(400, 'invalid_request_error', message, code, undefined, true);
  if ((account.capabilities as { transfers?: string }).transfers !== 'active') {
    const message = 'Your destination account needs to have the transfers capability enabled.';
    throw refuse(message, 'insufficient_capabilities_for_transfer');
  }
  if (books.balance(currency) < amount) {
    throw refuse('You have insufficient funds in your Stripe account.', 'balance_insufficient');
  }
  books.move(currency, -amount);
  const transfer = books.make('tr', 'transfer', {
    amount,
    currency,
    destination,
    transfer_group: params.transfer_group ?? null,
    metadata: metadataIn(params),
    amount_reversed: 0,
    reversed: false,
  });
  emit('transfer.created', transfer);
  return transfer;
}

function createRefund({ params }: ApiRequest, _id: string, { books, happen }: Deps): Thing {
  const intentId = text(params, 'payment_intent');
  const intent = books.find(intentId);
  if (intent?.object !== 'payment_intent') throw nothing('payment_intent', intentId);
  const amount = params.amount === undefined ? Number(intent.amount) : amountIn(params, 'amount');
  return ran(() => happen.refund(intentId, amount, metadataIn(params)));
}

function reverseTransfer({ params }: ApiRequest, id: string, { books, happen }: Deps): unknown {
  const transfer = books.find(id);
  if (transfer?.object !== 'transfer') throw nothing('transfer', id);
  const left = Number(transfer.amount) - Number(transfer.amount_reversed);
  const amount = params.amount === undefined ? left : amountIn(params, 'amount');
  ran(() => happen.reverse(id, amount));
  return books.make('trr', 'transfer_reversal', { amount, currency: transfer.currency, transfer: id });
}

/** By the payment, and always with the invoice in full. */
function listInvoicePayments({ params, path }: ApiRequest, _id: string, { books }: Deps): unknown {
  const wanted = nested(params, 'payment').payment_intent;
  const data = books
    .list('invoice_payment')
    .filter(({ payment }) => (payment as { payment_intent: string }).payment_intent === wanted)
    .map((payment) => ({ ...payment, invoice: books.get(String(payment.invoice)) }));
  return { object: 'list', url: path, has_more: false, data };
}

function cancelSubscription(_request: ApiRequest, id: string, { books, happen }: Deps): Thing {
  const subscription = books.find(id);
  if (subscription?.object !== 'subscription' || subscription.status === 'canceled') throw nothing('subscription', id);
  return happen.cancel(id);
}
