import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Arena, arenaOfSpec } from '../../ops/engines/arena.contract.js';
import { traceIdOf } from '../kernel/index.js';

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
}

const spans: Span[] = [];
const services = new Set<string>();
let collector: Server;
let arena: Arena;
let url: string;
let headers: Record<string, string>;
const folder = mkdtempSync(join(tmpdir(), 'agon-traces-'));

/** What a collector does with OTLP over HTTP: reads the spans out of the request, and says that it has them. */
function startCollector(): Promise<string> {
  collector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const text = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
      const sent = JSON.parse(text.toString()) as {
        resourceSpans: { resource: { attributes: Span['attributes'] }; scopeSpans: { spans: Span[] }[] }[];
      };
      expect(request.url).toBe('/v1/traces');
      for (const { resource, scopeSpans } of sent.resourceSpans) {
        services.add(resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '');
        for (const scope of scopeSpans) spans.push(...scope.spans);
      }
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  return new Promise((resolve) => {
    collector.listen(0, '127.0.0.1', () => {
      resolve(`http://127.0.0.1:${(collector.address() as AddressInfo).port}`);
    });
  });
}

const ask = async (query: string, more: Record<string, string> = {}) => {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers, ...more },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = (await response.json()) as { data: Record<string, { id: string }>; errors?: unknown };
  expect(errors ?? []).toEqual([]);
  return { data, requestId: response.headers.get('x-request-id') ?? '' };
};

beforeAll(async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: await startCollector() };
  const flags = { dataDir: folder };
  arena = await arenaOfSpec(flags, { env });
  url = await arena.listen();
  headers = { authorization: `Bearer ${readFileSync(join(folder, 'operator.token'), 'utf8')}` };
  for (const owner of ['ada', 'bob']) {
    await ask(`mutation { registerOwner(accountId: "${owner}", displayName: "${owner}") { id } }`);
    await ask(`mutation { grantCredits(accountId: "${owner}", amountCents: "1000") { id } }`);
    const source = '"function act(o) { return o.legal[0] }"';
    const agent = `ownerId: "${owner}", name: "bot", games: ["tic-tac-toe"], source: ${source}`;
    await ask(`mutation { submitAgent(${agent}) { id } }`);
  }
});

afterAll(async () => {
  await arena?.stop();
  await new Promise((resolve) => collector?.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

const PROPOSE =
  'mutation { proposeMatch(game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"], stakeCents: "100") { id } }';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';

describe('one match, from its proposal to the ledger', () => {
  it('is one trace, of which every span hangs on the one before it', async () => {
    const { requestId } = await ask(PROPOSE);
    const { requestId: called } = await ask(PROPOSE, { traceparent: `00-${TRACE}-${CALLER}-01` });
    expect(called).not.toBe(requestId);
    const settledOf = async () =>
      (await arena.store.readAll()).filter(({ type }) => type === 'MatchSettled').map(({ meta }) => meta.correlationId);
    await expect.poll(settledOf, { timeout: 60_000 }).toHaveLength(2);
    await arena.settled();
    // Stopping sends what is left.
    await arena.stop();
    expect([...services]).toEqual(['agon']);

    const wholeOf = (traceId: string) => spans.filter((span) => span.traceId === traceId);
    for (const [traceId, root] of [
      [traceIdOf(requestId), undefined],
      [TRACE, CALLER],
    ] as const) {
      const whole = wholeOf(traceId);
      const names = whole.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(EXPECTED));
      const ids = new Map(whole.map((span) => [span.spanId, span]));
      expect(ids.size).toBe(whole.length);
      const roots = whole.filter(({ parentSpanId }) => !parentSpanId || !ids.has(parentSpanId));
      expect(roots.map(({ name, parentSpanId }) => [name, parentSpanId || undefined])).toEqual([
        ['POST /graphql', root],
      ]);
      expect(chainOf(whole, 'projection.balances HoldPosted', ids)).toEqual([
        'projection.balances HoldPosted',
        'append HoldPosted',
        'PostHold',
        'append MatchSettled',
        'ReportMatch',
        'append MatchReady',
        'EscrowStake',
        'append FundsHeld',
        'HoldFunds',
        'append MatchProposed',
        'ProposeMatch',
        'POST /graphql',
      ]);
      for (const { startTimeUnixNano, endTimeUnixNano } of whole) {
        expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano)).toBe(true);
      }
    }
    // Whatever is not of this match is not in its trace.
    expect(wholeOf(TRACE).some(({ name }) => name.includes('AgentSubmitted'))).toBe(false);
  });
});

const EXPECTED = [
  'POST /graphql',
  'mutation proposeMatch',
  'ProposeMatch',
  'append MatchProposed',
  'policy.wallet.stakes MatchProposed',
  'HoldFunds',
  'ClaimMatch',
  'ReportMatch',
  'append MatchSettled',
  'projection.matches MatchSettled',
  'projection.leaderboards MatchSettled',
];

/** From a span up to its root, by name. */
function chainOf(whole: readonly Span[], name: string, ids: ReadonlyMap<string, Span>): string[] {
  const names: string[] = [];
  let span = whole.find((each) => each.name === name);
  while (span) {
    names.push(span.name);
    span = ids.get(span.parentSpanId ?? '');
  }
  return names;
}
