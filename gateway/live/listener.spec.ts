import { once } from 'node:events';
import { connect } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { AgonError } from '../../services/kernel/index.js';
import { type Admission, type Listener, Listeners } from './listener.js';

const servers: FastifyInstance[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

/** A gateway with one feed, and those who listen to it. */
async function serve(listeners: Listeners, recheck?: Admission['recheck']) {
  const fastify = Fastify({ forceCloseConnections: true });
  const heard: Listener[] = [];
  const left: Listener[] = [];
  fastify.get('/feed', (request, reply) => {
    listeners.assertRoom(request);
    const listener = listeners.bySse({ request, ...(recheck ? { recheck } : {}) }, reply);
    heard.push(listener);
    listener.onLeave(() => left.push(listener));
  });
  servers.push(fastify);
  const url = await fastify.listen({ port: 0, host: '127.0.0.1' });
  return { url, heard, left };
}

const request = (ip: string) => ({ ip }) as Admission['request'];

function fakeSocket() {
  const heard: unknown[] = [];
  const socket = {
    OPEN: 1,
    readyState: 1,
    bufferedAmount: 0,
    ping: () => {},
    on: () => {},
    once: () => {},
    terminate: () => heard.push('terminated'),
    send: (text: string) => {
      socket.bufferedAmount += text.length;
    },
    close: (code: number) => heard.push(code),
  };
  return { heard, socket: socket as never as WebSocket };
}

describe('a listener', () => {
  it('by WebSocket who does not read is dropped', () => {
    const { heard, socket } = fakeSocket();
    const listener = new Listeners().bySocket({ request: request('203.0.113.1') }, socket);
    listener.tell('turn', JSON.stringify('x'.repeat(200_000)), '1.1');
    expect(heard).toEqual([]);
    listener.tell('turn', JSON.stringify('x'.repeat(200_000)), '1.2');
    expect(heard).toEqual([1013, 'terminated']);
  });

  it('by server-sent events who does not read is dropped, and one who reads is not', async () => {
    const { url, heard, left } = await serve(new Listeners());
    const { hostname, port } = new URL(url);
    // Takes the first bytes and nothing more.
    const deaf = connect(Number(port), hostname);
    deaf.write('GET /feed HTTP/1.1\r\nhost: here\r\n\r\n');
    await once(deaf, 'data');
    deaf.pause();
    const reader = (await fetch(`${url}/feed`)).body?.getReader();
    const [slow, fast] = heard as [Listener, Listener];
    let taken = 0;
    const reading = (async () => {
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        taken += piece.value.length;
      }
    })();
    const data = JSON.stringify('x'.repeat(100_000));
    for (let told = 1; !left.includes(slow); told++) {
      for (const each of [slow, fast]) each.tell('turn', data, `1.${told}`);
      while (taken < told * data.length) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(left).toEqual([slow]);
    fast.end();
    await reading;
    deaf.destroy();
  });

  it('has a seat of so many in all, and of so many for its address, a network of IPv6 being one', () => {
    const full = expect.objectContaining({ code: 'LIVE.FULL' });
    const listeners = new Listeners({ most: 3, perAddressMax: 2 });
    for (const ip of ['2001:db8::1', '2001:db8::2']) listeners.bySocket({ request: request(ip) }, fakeSocket().socket);
    expect(() => listeners.assertRoom(request('2001:db8::3'))).toThrow(full);
    listeners.assertRoom(request('203.0.113.1'));
    listeners.bySocket({ request: request('203.0.113.1') }, fakeSocket().socket);
    expect(() => listeners.assertRoom(request('203.0.113.2'))).toThrow(full);
    const late = fakeSocket();
    listeners.bySocket({ request: request('203.0.113.2') }, late.socket);
    expect(late.heard).toEqual([1008]);
  });

  it('is let go of once its right is gone, and stays while nobody can say', async () => {
    let asked = 0;
    const recheck = async () => {
      asked += 1;
      if (asked < 3) throw new Error('the database is away');
      throw new AgonError('AUTH.UNAUTHENTICATED', 'The session ended.');
    };
    const { url, left } = await serve(new Listeners({ beatMs: 10 }), recheck);
    const text = await (await fetch(`${url}/feed`)).text();
    expect(text.match(/still here/g)?.length).toBeGreaterThanOrEqual(3);
    expect(asked).toBeGreaterThanOrEqual(3);
    expect(left).toHaveLength(1);
  });
});
