import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import { join } from 'node:path';
import { root } from '../paths.js';
import type { Resolve } from './target.js';

export const secret = 'sk-very-secret-0123456789';
export const certificateFile = join(root, 'sandbox-runner', 'fixtures', 'upstream.pem');
export const pem = readFileSync(certificateFile);

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** What the upstream saw on its own end of the wire. */
export interface Upstream {
  readonly port: number;
  readonly requests: { url: string; headers: IncomingMessage['headers']; raw: string[]; body: string }[];
  readonly bytes: { in: number; out: number };
  close(): void;
}

export async function upstreamOf(
  secure: boolean,
  handler: Handler = (_, response) => response.end('hello'),
): Promise<Upstream> {
  const requests: Upstream['requests'] = [];
  const bytes = { in: 0, out: 0 };
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      requests.push({ url: request.url ?? '', headers: request.headers, raw: request.rawHeaders, body });
      handler(request, response);
    });
    request.on('error', () => {});
  };
  const server: Server = secure ? createSecureServer({ key: pem, cert: pem }, listener) : createServer(listener);
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      bytes.in += socket.bytesRead;
      bytes.out += socket.bytesWritten;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port: (server.address() as AddressInfo).port, requests, bytes, close };
}

export const here: Resolve = async () => [{ address: '127.0.0.1', family: 4 }];
