import { existsSync, statSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { certificateFile, type Handler, here, pem, secret, type Upstream, upstreamOf } from './egress.contract.js';
import { Egress } from './egress.js';
import { type EgressEntry, entryLine } from './log.js';
import { type Grant, policyFrom } from './policy.js';
import type { Resolve } from './target.js';

let closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  closers = [];
});

const upstream = async (...args: Parameters<typeof upstreamOf>): Promise<Upstream> => {
  const opened = await upstreamOf(...args);
  closers.push(opened.close);
  return opened;
};

interface Opening {
  readonly allow: readonly object[];
  readonly caps?: object;
  readonly resolve?: Resolve;
}

/** A proxy for one agent, a client that writes bytes to its socket, and what was logged. */
async function proxyFor({ allow, caps = {}, resolve = here }: Opening) {
  const secrets = { KEY: { env: 'KEY' } };
  const policy = policyFrom({ agents: { a: { allow, caps } }, secrets, authorities: [certificateFile] }, '.', {
    KEY: secret,
  });
  const entries: EgressEntry[] = [];
  const egress = new Egress(policy, { resolve, onEntry: (entry) => entries.push(entry) });
  const opened = await egress.open({ matchId: 'match-1', seat: 1, agentId: 'a' }, policy.agents.a as Grant);
  closers.push(() => egress.close(), opened.close);
  const say = (text: string | Buffer, wait: RegExp | 'end' = 'end'): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(opened.endpoint.socket);
      let heard = '';
      const done = () => {
        socket.destroy();
        resolve(heard);
      };
      socket.on('data', (chunk) => {
        heard += chunk.toString('latin1');
        if (wait !== 'end' && wait.test(heard)) done();
      });
      socket
        .on('end', done)
        .on('close', done)
        .on('error', (error: NodeJS.ErrnoException) => {
          if (error.code === 'ECONNRESET' || error.code === 'EPIPE') done();
          else reject(error);
        });
      socket.write(text);
    });
  return { entries, say, opened };
}

const get = (url: string, more = ''): string => `GET ${url} HTTP/1.1\r\nHost: ignored.test\r\n${more}\r\n`;

describe('the proxy', () => {
  it('passes an allowed request on and back, in its own words, and logs who, where and how many bytes', async () => {
    const up = await upstream(false, (_, response) => {
      response.writeHead(201, {
        'x-answer': '42',
        'set-cookie': ['a=1', 'b=2'],
        connection: 'close',
        'keep-alive': 'x',
      });
      response.end('created');
    });
    const { say, entries } = await proxyFor({ allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }] });
    const answer = await say(
      `POST http://upstream.test:${up.port}/v1/things?token=private HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 5\r\n` +
        'X-Kept: yes\r\nConnection: X-Dropped\r\nX-Dropped: no\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\n\r\nabcde',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 201 /);
    expect(answer).toMatch(/x-answer: 42\r\nset-cookie: a=1\r\nset-cookie: b=2/);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(answer).not.toMatch(/keep-alive: x/);
    expect(answer).toContain('created');
    const [seen] = up.requests;
    expect(seen).toMatchObject({ url: '/v1/things?token=private', body: 'abcde' });
    expect(seen?.headers).toEqual({
      'content-length': '5',
      'x-kept': 'yes',
      host: `upstream.test:${up.port}`,
      connection: 'close',
    });
    await vi.waitFor(() => expect(up.bytes.in).toBeGreaterThan(0));
    expect(entries).toEqual([
      {
        matchId: 'match-1',
        seat: 1,
        agentId: 'a',
        method: 'POST',
        host: 'upstream.test',
        port: up.port,
        path: '/v1/things',
        verdict: 'allowed',
        code: '',
        status: 201,
        bytesOut: up.bytes.in,
        bytesIn: up.bytes.out,
        durationMs: expect.any(Number),
      },
    ]);
    expect(entryLine(entries[0] as EgressEntry)).toMatch(
      /^egress POST upstream\.test:\d+\/v1\/things allowed 201, \d+ B out/,
    );
  });

  it('tunnels TLS to an allowed host, adds nothing to it, and counts its bytes', async () => {
    const up = await upstream(true);
    const { opened, entries } = await proxyFor({
      allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }],
    });
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(opened.endpoint.socket);
      socket.write(`CONNECT upstream.test:${up.port} HTTP/1.1\r\nHost: upstream.test\r\n\r\n`);
      socket.once('data', (head) => {
        expect(head.toString()).toBe('HTTP/1.1 200 Connection Established\r\n\r\n');
        const secure = tlsConnect({ socket, servername: 'upstream.test', ca: pem });
        let text = '';
        secure.on('data', (chunk) => {
          text += chunk;
        });
        secure.on('end', () => resolve(text)).on('error', reject);
        secure.write('GET /in-private HTTP/1.1\r\nHost: upstream.test\r\nConnection: close\r\n\r\n');
      });
    });
    expect(answer).toMatch(/hello$/);
    expect(up.requests).toMatchObject([{ url: '/in-private', headers: { host: 'upstream.test' } }]);
    const tunnel = { method: 'CONNECT', path: '', verdict: 'allowed', status: 200, code: '' };
    await vi.waitFor(() => expect(entries).toMatchObject([{ ...tunnel, bytesIn: up.bytes.out }]));
  });

  it('counts what goes through a tunnel to the byte', async () => {
    const up = await upstream(false);
    const { say, entries } = await proxyFor({ allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }] });
    const inside = 'GET / HTTP/1.0\r\n\r\n';
    const heard = await say(`CONNECT upstream.test:${up.port} HTTP/1.1\r\n\r\n${inside}`);
    const established = 'HTTP/1.1 200 Connection Established\r\n\r\n';
    expect(heard.startsWith(established)).toBe(true);
    const bytes = { bytesOut: inside.length, bytesIn: heard.length - established.length };
    await vi.waitFor(() => expect(entries).toMatchObject([{ code: '', ...bytes }]));
  });

  it('refuses whatever its grant does not name, with the reason', async () => {
    const up = await upstream(false);
    const { say, entries } = await proxyFor({ allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }] });
    const cases: [string, string][] = [
      [get(`http://other.test:${up.port}/`), 'EGRESS.HOST_REFUSED'],
      [get('http://upstream.test:1/'), 'EGRESS.PORT_REFUSED'],
      [get(`http://127.0.0.1:${up.port}/`), 'EGRESS.ADDRESS_REFUSED'],
      [get('http://169.254.169.254/latest/meta-data'), 'EGRESS.ADDRESS_REFUSED'],
      [get('/etc/passwd'), 'EGRESS.BAD_REQUEST'],
      [`CONNECT other.test:443 HTTP/1.1\r\n\r\n`, 'EGRESS.HOST_REFUSED'],
      [`CONNECT 127.0.0.1:${up.port} HTTP/1.1\r\n\r\n`, 'EGRESS.ADDRESS_REFUSED'],
      [get(`http://upstream.test:${up.port}/`, 'Connection: Upgrade\r\nUpgrade: websocket\r\n'), 'EGRESS.BAD_REQUEST'],
    ];
    for (const [request, code] of cases) {
      const answer = await say(request);
      expect(answer, request).toContain(`x-agon-egress: ${code}\r\n`);
      expect(answer, request).toContain(`{"error":{"code":"${code}","message":"`);
    }
    expect(entries.map(({ code, verdict }) => `${verdict} ${code}`)).toEqual(
      cases.map(([, code]) => `refused ${code}`),
    );
    expect(up.requests).toEqual([]);
  });

  it('reaches no private address by a name, and asks for a name once, so that its answer cannot change', async () => {
    const up = await upstream(false);
    let asked = 0;
    // The classic: an address of the internet while it is checked, one of the inside when it is used.
    const rebinding: Resolve = async () => [{ address: asked++ === 0 ? '10.255.255.1' : '127.0.0.1', family: 4 }];
    const closed = await proxyFor({ allow: [{ host: 'upstream.test', port: up.port }], resolve: rebinding });
    for (const code of ['EGRESS.PRIVATE_ADDRESS', 'EGRESS.PRIVATE_ADDRESS']) {
      expect(await closed.say(get(`http://upstream.test:${up.port}/`))).toContain(code);
    }
    expect(asked).toBe(2);
    const pinned = await proxyFor({
      allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }],
      resolve: async () => [{ address: asked++ === 2 ? '127.0.0.1' : '169.254.169.254', family: 4 }],
    });
    expect(await pinned.say(get(`http://upstream.test:${up.port}/`))).toContain('hello');
    expect(asked).toBe(3);
    expect(await pinned.say(get(`http://upstream.test:${up.port}/`))).toContain('EGRESS.PRIVATE_ADDRESS');
    for (const address of ['::ffff:127.0.0.1', 'fe80::1', '224.0.0.1']) {
      const trick = await proxyFor({
        allow: [{ host: 'upstream.test', port: up.port }],
        resolve: async () => [{ address, family: 6 }],
      });
      expect(await trick.say(get(`http://upstream.test:${up.port}/`)), address).toContain('EGRESS.PRIVATE_ADDRESS');
    }
  });

  it('takes no message whose end can be read in two ways', async () => {
    const up = await upstream(false);
    const { say, entries } = await proxyFor({ allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }] });
    const post = (head: string, body: string) =>
      `POST http://upstream.test:${up.port}/ HTTP/1.1\r\nHost: upstream.test\r\n${head}\r\n\r\n${body}`;
    const smuggled = `0\r\n\r\n${get(`http://other.test:${up.port}/smuggled`)}`;
    for (const request of [
      post('Content-Length: 5\r\nTransfer-Encoding: chunked', smuggled),
      post('Transfer-Encoding: chunked\r\nContent-Length: 5', smuggled),
      post('Content-Length: 5\r\nContent-Length: 6', 'abcdef'),
      post('Content-Length: 5, 6', 'abcdef'),
      post('Transfer-Encoding: gzip, chunked', smuggled),
      post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity', smuggled),
      post('Transfer-Encoding : chunked', smuggled),
      post('Content-Length: +5', 'abcde'),
      post('X: a\r\n\u0000: b', ''),
      post('Host: second.test\r\nContent-Length: 0', ''),
      'GET http://upstream.test/ HTTP/3.0\r\n\r\n',
      'nonsense\r\n\r\n',
      `GET http://upstream.test:${up.port}/\r\n\r\n`,
    ]) {
      expect(await say(request), JSON.stringify(request)).toMatch(/^HTTP\/1\.1 400 [\s\S]*EGRESS\.BAD_REQUEST/);
    }
    expect(new Set(entries.map(({ code }) => code))).toEqual(new Set(['EGRESS.BAD_REQUEST']));
    expect(up.requests).toEqual([]);
    // Chunks are read and framed anew, and what follows a request on its connection is not looked at.
    await say(post('Transfer-Encoding: chunked', `5\r\nabcde\r\n${smuggled}`));
    expect(up.requests).toMatchObject([{ body: 'abcde' }]);
  });

  it('follows no redirect: the agent has to ask again, and is judged again', async () => {
    const up = await upstream(false, (_, response) => {
      response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
    });
    const { say } = await proxyFor({ allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }] });
    expect(await say(get(`http://upstream.test:${up.port}/`))).toMatch(
      /^HTTP\/1\.1 302 [\s\S]*location: http:\/\/169\.254/,
    );
    expect(up.requests).toHaveLength(1);
  });
});

describe('the end of a match', () => {
  it('cuts off requests and tunnels that are under way, and those who do not let go', async () => {
    const up = await upstream(false, () => {});
    const { say, entries, opened } = await proxyFor({
      allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }],
    });
    const place = `upstream.test:${up.port}`;
    const waiting = [
      say(get(`http://${place}/`)),
      say(`CONNECT ${place} HTTP/1.1\r\n\r\n`),
      say('GET http://upstream.test/ HTT'),
    ];
    // Refused, and still holding its end of the line.
    const clinging = connect({ path: opened.endpoint.socket, allowHalfOpen: true }).on('error', () => {});
    clinging.write('CONNECT other.test:443 HTTP/1.1\r\n\r\n');
    await vi.waitFor(() => expect(up.requests).toHaveLength(1));
    await vi.waitFor(() => expect(entries).toMatchObject([{ code: 'EGRESS.HOST_REFUSED' }]));
    await opened.close();
    await Promise.all(waiting);
    await vi.waitFor(() => expect(entries).toHaveLength(3));
    expect(existsSync(opened.endpoint.socket)).toBe(false);
    clinging.destroy();
  });
});

describe('whoever breaks off', () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n';
  /** What an upstream may do instead of answering. */
  const breaking: readonly [name: string, answer: (socket: Socket) => void][] = [
    ['before a word', (socket) => socket.destroy()],
    ['with a reset', (socket) => socket.resetAndDestroy()],
    ['in the head', (socket) => socket.end('HTTP/1.1 200 OK\r\nX-')],
    ['in the body', (socket) => socket.end(`${head}abc`)],
    ['in the body with a reset', (socket) => socket.write(`${head}abc`, () => socket.resetAndDestroy())],
    ['with nonsense', (socket) => socket.end('\u0000\u0001\u0002')],
    ['with two lengths', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab')],
    [
      'with another protocol',
      (socket) => socket.end('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
    ],
    ['with a head that is too long', (socket) => socket.end(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`)],
  ];

  it.each(breaking)('an upstream, %s: one request is lost, and the next is served', async (_name, answer) => {
    let broken = true;
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => (broken ? answer(socket) : socket.end('HTTP/1.1 200 OK\r\n\r\nwell')));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    for (const upgrade of [{}, { upgrade: 'https' }]) {
      const { say, entries } = await proxyFor({
        allow: [{ host: 'upstream.test', port, allowPrivate: true, ...upgrade }],
      });
      broken = true;
      const answer = await say(get(`http://upstream.test:${port}/`));
      expect(answer).not.toMatch(/^HTTP\/1\.1 101/);
      expect(entries).toMatchObject([{ code: expect.stringMatching(/^EGRESS\.UPSTREAM_(FAILED|UNTRUSTED)$/) }]);
      broken = false;
      if (!('upgrade' in upgrade)) expect(await say(get(`http://upstream.test:${port}/`))).toMatch(/well/);
    }
  });

  it('an upstream or an agent, in the middle of an answer: whoever was first is written down', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => {}));
      socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n${'x'.repeat(500)}`));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    const place = `upstream.test:${port}`;
    const tunnel = `CONNECT ${place} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n`;
    for (const [text, byUpstream, byAgent] of [
      [get(`http://${place}/`), 'EGRESS.UPSTREAM_FAILED', 'EGRESS.GONE'],
      // Who leaves a tunnel ends it, and that is all that there is to it.
      [tunnel, 'EGRESS.UPSTREAM_FAILED', ''],
    ] as const) {
      const { say, entries } = await proxyFor({ allow: [{ host: 'upstream.test', port, allowPrivate: true }] });
      const cut = say(text);
      await vi.waitFor(() => expect(sockets).toHaveLength(1));
      setTimeout(() => sockets.pop()?.resetAndDestroy(), 20);
      expect(await cut).toMatch(/xxx$/);
      await vi.waitFor(() => expect(entries).toMatchObject([{ status: 200, code: byUpstream }]));
      expect(await say(text, /xxx$/)).toMatch(/xxx$/);
      await vi.waitFor(() => expect(entries[1]).toMatchObject({ status: 200, code: byAgent }));
      sockets.pop()?.destroy();
    }
  });

  it('an agent, at any byte of what it says: the next is served', async () => {
    const up = await upstream(false);
    const { opened, say } = await proxyFor({
      allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }],
      caps: { connections: 256, requests: 10_000 },
    });
    const post = `POST http://upstream.test:${up.port}/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde`;
    const tunnel = `CONNECT upstream.test:${up.port} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n`;
    for (const text of [post, tunnel]) {
      for (let length = 0; length <= text.length; length += 3) {
        const socket = connect(opened.endpoint.socket).on('error', () => {});
        await new Promise<void>((resolve) => socket.write(text.slice(0, length), () => resolve()));
        if (length % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
        socket.destroy();
      }
    }
    expect(await say(post)).toMatch(/hello$/);
  });
});

describe('the caps', () => {
  const big = Buffer.alloc(300_000, 'x');
  const caps = {
    bytesIn: 65_536,
    bytesOut: 65_536,
    requests: 3,
    connections: 2,
    headerBytes: 1_024,
    headMs: 100,
    idleMs: 200,
    totalMs: 2_000,
  };
  const opening = async (handler?: Handler, more: object = {}) => {
    const up = await upstream(false, handler);
    const proxy = await proxyFor({
      allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }],
      caps: { ...caps, ...more },
    });
    return { ...proxy, up, url: `http://upstream.test:${up.port}/` };
  };

  it('cut an answer that is too large, and let nothing through afterwards', async () => {
    const { say, url, entries } = await opening((_, response) => response.end(big));
    const answer = await say(get(url));
    expect(answer.length).toBeLessThan(caps.bytesIn + 1_000);
    expect(entries).toMatchObject([{ verdict: 'allowed', code: 'EGRESS.BYTES_IN' }]);
    expect(entries[0]?.bytesIn).toBeLessThan(caps.bytesIn + 2 * 65_536 + 1);
    expect(await say(get(url))).toContain('EGRESS.BYTES_IN');
  });

  it('refuse a body that is too large, whether it says so or not', async () => {
    const { say, url, up } = await opening();
    expect(await say(`POST ${url} HTTP/1.1\r\nContent-Length: 300000\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 413 [\s\S]*EGRESS\.BYTES_OUT/,
    );
    const chunked = await say(
      Buffer.concat([
        Buffer.from(`POST ${url} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n${big.length.toString(16)}\r\n`),
        big,
        Buffer.from('\r\n0\r\n\r\n'),
      ]),
    );
    expect(chunked).toMatch(/^(HTTP\/1\.1 413 [\s\S]*EGRESS\.BYTES_OUT[\s\S]*)?$/);
    expect(up.requests).toEqual([]);
  });

  it('hold for tunnels, in both directions', async () => {
    for (const [direction, code] of [
      ['out', 'EGRESS.BYTES_OUT'],
      ['in', 'EGRESS.BYTES_IN'],
    ] as const) {
      const up = await upstream(false, (_, response) => response.end(big));
      const { say, entries } = await proxyFor({
        allow: [{ host: 'upstream.test', port: up.port, allowPrivate: true }],
        caps,
      });
      const head = `CONNECT upstream.test:${up.port} HTTP/1.1\r\n\r\n`;
      await say(Buffer.concat([Buffer.from(head), direction === 'out' ? big : Buffer.from('GET / HTTP/1.0\r\n\r\n')]));
      await vi.waitFor(() => expect(entries).toMatchObject([{ method: 'CONNECT', code }]));
    }
  });

  it('end what is too slow: a head in drops, an upstream that is silent, a body that never comes', async () => {
    const { say, url, entries } = await opening(() => {}, { requests: 10 });
    expect(await say('GET http://upstream.test/ HTTP/1.1\r\nX: ')).toMatch(/^HTTP\/1\.1 408 [\s\S]*EGRESS\.TOO_SLOW/);
    expect(await say('')).toMatch(/EGRESS\.TOO_SLOW/);
    expect(await say(get(url))).toMatch(/^HTTP\/1\.1 408 [\s\S]*EGRESS\.TOO_SLOW/);
    expect(await say(`POST ${url} HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc`)).toMatch(/EGRESS\.TOO_SLOW/);
    expect(entries.map(({ code }) => code)).toEqual(Array(4).fill('EGRESS.TOO_SLOW'));
  });

  it('bound the head, the number of requests, and connections at a time', async () => {
    const { say, url, entries, opened } = await opening();
    expect(await say(get(url, `X: ${'x'.repeat(2_000)}\r\n`))).toMatch(
      /^HTTP\/1\.1 431 [\s\S]*EGRESS\.HEADERS_TOO_LARGE/,
    );
    for (const expected of [
      /hello/,
      /hello/,
      /^HTTP\/1\.1 429 [\s\S]*EGRESS\.TOO_MANY_REQUESTS/,
      /TOO_MANY_REQUESTS/,
      /TOO_MANY/,
    ]) {
      expect(await say(get(url))).toMatch(expected);
    }
    // The log ends with the first that is too many.
    expect(entries.map(({ code }) => code)).toEqual(['EGRESS.HEADERS_TOO_LARGE', '', '', 'EGRESS.TOO_MANY_REQUESTS']);
    const crowd = await proxyFor({ allow: [{ host: 'upstream.test', allowPrivate: true }], caps: { connections: 2 } });
    const held = [1, 2].map(() => connect(crowd.opened.endpoint.socket));
    await Promise.all(held.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    expect(await crowd.say(get(url))).toBe('');
    expect(crowd.entries).toMatchObject([{ verdict: 'refused', code: 'EGRESS.TOO_MANY_CONNECTIONS' }]);
    for (const socket of held) socket.destroy();
    expect(statSync(opened.endpoint.socket).mode & 0o777).toBe(0o600);
  });
});

describe('secrets', () => {
  const headers = { Authorization: 'Bearer {{secret:KEY}}' };
  const echo: Handler = (request, response) => {
    const { authorization = '' } = request.headers;
    const length = authorization.length + ' and '.length + btoa(secret).length;
    response.writeHead(200, {
      'x-echo': authorization,
      'x-coded': encodeURIComponent(secret),
      'content-length': length,
    });
    // In two pieces, with the secret across them.
    response.write(`${authorization.slice(0, 15)}`);
    setTimeout(() => response.end(`${authorization.slice(15)} and ${btoa(secret)}`), 20);
  };

  it('are added where the proxy itself speaks TLS, in place of what the agent sent, and come back as stars', async () => {
    const up = await upstream(true, echo);
    const { say, entries } = await proxyFor({
      allow: [{ host: 'upstream.test', port: up.port, upgrade: 'https', headers, allowPrivate: true }],
    });
    const answer = await say(
      get(
        `http://upstream.test:${up.port}/${secret}`,
        'authorization: Bearer mine\r\nAUTHORIZATION: Bearer other\r\nAccept-Encoding: gzip\r\n',
      ),
    );
    expect(up.requests).toMatchObject([
      { headers: { authorization: `Bearer ${secret}`, 'accept-encoding': 'identity' } },
    ]);
    expect(up.requests[0]?.raw.filter((name) => name.toLowerCase() === 'authorization')).toHaveLength(1);
    expect(answer).toContain(`x-echo: Bearer ${'*'.repeat(secret.length)}`);
    expect(answer).toContain(`Bearer ${'*'.repeat(secret.length)} and ${'*'.repeat(btoa(secret).length)}`);
    for (const form of [secret, btoa(secret), encodeURIComponent(secret)]) {
      expect(answer).not.toContain(form);
      expect(JSON.stringify(entries)).not.toContain(form);
    }
    const logged = { verdict: 'allowed', status: 200, path: `/${'*'.repeat(secret.length)}` };
    expect(entries).toMatchObject([logged]);
    // Counted below TLS; its goodbye, of 24 bytes, may be left unread.
    await vi.waitFor(() => expect(up.bytes.out - (entries[0]?.bytesIn ?? 0)).toBeOneOf([0, 24]));
    // Naming the header as one for this hop only does not get rid of it.
    await say(get(`http://upstream.test:${up.port}/`, 'Connection: authorization\r\n'));
    expect(up.requests[1]?.headers.authorization).toBe(`Bearer ${secret}`);
  });

  it('go to no upstream whose certificate is not trusted, or is of another host', async () => {
    const up = await upstream(true, echo);
    for (const [host, authorities] of [
      ['upstream.test', []],
      ['elsewhere.test', [certificateFile]],
    ] as const) {
      const allow = [{ host, port: up.port, upgrade: 'https', headers, allowPrivate: true }];
      const policy = policyFrom({ agents: { a: { allow } }, secrets: { KEY: { env: 'KEY' } }, authorities }, '.', {
        KEY: secret,
      });
      const entries: EgressEntry[] = [];
      const egress = new Egress(policy, { resolve: here, onEntry: (entry) => entries.push(entry) });
      const opened = await egress.open({ matchId: 'm', seat: 0, agentId: 'a' }, policy.agents.a as Grant);
      closers.push(() => egress.close(), opened.close);
      const answer = await new Promise<string>((resolve) => {
        let text = '';
        connect(opened.endpoint.socket, function (this: Socket) {
          this.write(get(`http://${host}:${up.port}/`));
        })
          .on('data', (chunk) => {
            text += chunk;
          })
          .on('close', () => resolve(text));
      });
      expect(answer).toMatch(/^HTTP\/1\.1 502 [\s\S]*EGRESS\.UPSTREAM_UNTRUSTED/);
      expect(entries).toMatchObject([{ code: 'EGRESS.UPSTREAM_UNTRUSTED' }]);
    }
    expect(up.requests).toEqual([]);
  });

  it('are not handed back in a form that nobody can search', async () => {
    const up = await upstream(true, (request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(request.headers.authorization ?? ''));
    });
    const { say } = await proxyFor({
      allow: [{ host: 'upstream.test', port: up.port, upgrade: 'https', headers, allowPrivate: true }],
    });
    expect(await say(get('http://upstream.test/'))).toMatch(/^HTTP\/1\.1 502 [\s\S]*EGRESS\.UNREADABLE/);
  });
});
