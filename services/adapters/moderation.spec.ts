import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAgonError, Secret } from '../kernel/index.js';
import { HttpModeration, type HttpModerationOptions } from './moderation.js';

let server: Server;
let url: string;
let answer: (request: IncomingMessage, response: ServerResponse, body: string) => void;
const asked: { body: unknown; authorization: string | undefined }[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      asked.push({ body: JSON.parse(body), authorization: request.headers.authorization });
      answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/moderations`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const says = (json: unknown) => {
  answer = (_request, response) => response.end(JSON.stringify(json));
};
const moderation = (options: Partial<HttpModerationOptions> = {}) =>
  new HttpModeration({ url, timeoutMs: 5_000, onFailure: 'closed', ...options });

describe('a moderation API', () => {
  it('is sent the text with its key, and its word is passed on', async () => {
    says({ results: [{ flagged: true, categories: { hate: true, violence: false, 'odd\u001b': true } }] });
    const key = new Secret('of-this-spec');
    expect(await moderation({ key }).review({ text: 'Ada\n' })).toEqual({ flagged: true, categories: ['hate'] });
    expect(asked.at(-1)).toEqual({ body: { input: 'Ada\n' }, authorization: 'Bearer of-this-spec' });
    says({ results: [{ flagged: false, categories: {} }] });
    expect(await moderation().review({ text: 'Ada' })).toEqual({ flagged: false, categories: [] });
    expect(asked.at(-1)?.authorization).toBeUndefined();
  });

  const failures: [name: string, how: typeof answer, timeoutMs?: number][] = [
    ['an error', (_request, response) => response.writeHead(500).end()],
    ['too many requests', (_request, response) => response.writeHead(429).end()],
    ['not JSON', (_request, response) => response.end('<html>')],
    ['another shape', (_request, response) => response.end('{"ok":true}')],
    ['no verdict', (_request, response) => response.end('{"results":[{}]}')],
    ['far too much', (_request, response) => response.end(JSON.stringify({ results: ['x'.repeat(99_999)] }))],
    ['a redirect', (_request, response) => response.writeHead(307, { location: url }).end()],
    ['a cut', (_request, response) => response.destroy()],
    ['nothing at all', () => {}, 100],
  ];

  it.each(failures)(
    'that answers with %s refuses for now, or lets through, as it was set up',
    async (_name, how, timeoutMs) => {
      answer = how;
      const told: unknown[] = [];
      const options = { tell: (error: unknown) => void told.push(error), ...(timeoutMs ? { timeoutMs } : {}) };
      const refused = await moderation(options)
        .review({ text: 'Ada' })
        .catch((error: unknown) => error);
      expect(isAgonError(refused, 'CONTENT.UNCHECKED')).toBe(true);
      expect(await moderation({ ...options, onFailure: 'open' }).review({ text: 'Ada' })).toEqual({
        flagged: false,
        categories: [],
      });
      expect(told).toHaveLength(2);
    },
  );

  it('that is not there is no different', async () => {
    const nowhere = moderation({ url: 'http://127.0.0.1:9/' });
    await expect(nowhere.review({ text: 'Ada' })).rejects.toThrow(/looked at first/);
  });
});
