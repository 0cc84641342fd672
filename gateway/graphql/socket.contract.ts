import { createRequire } from 'node:module';
import { type Client, createClient } from 'graphql-ws';

/** As much of the `ws` package's client as the specs use; it comes without types. */
export interface RawSocket {
  readonly readyState: number;
  readonly _socket: { pause(): void; resume(): void };
  on(event: string, listener: (...args: never[]) => void): void;
  once(event: string, listener: (...args: never[]) => void): void;
  send(text: string): void;
  close(): void;
  terminate(): void;
}
type RawSocketOptions = { readonly headers?: Record<string, string> };

const WebSocket = createRequire(import.meta.url)('ws') as new (
  url: string,
  protocols?: string | readonly string[],
  options?: RawSocketOptions,
) => RawSocket;

const PROTOCOL = 'graphql-transport-ws';

/** The reference client of the protocol. */
export const clientOf = (url: string, connectionParams: Record<string, unknown> = {}): Client =>
  createClient({
    url: `${url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams,
    retryAttempts: 0,
    lazy: true,
  });

export interface Result {
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what each test says about it.
  readonly data?: any;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
}

/** The first `count` results of a subscription, or all of them; errors come as a result. */
export async function take(client: Client, query: string, count = Number.POSITIVE_INFINITY): Promise<Result[]> {
  const results: Result[] = [];
  await new Promise<void>((resolve, reject) => {
    const stop = client.subscribe(
      { query },
      {
        next: (result) => {
          results.push(result as Result);
          if (results.length === count) stop();
        },
        error: (error) => {
          if (!Array.isArray(error)) return reject(error);
          results.push({ errors: error as never });
          resolve();
        },
        complete: resolve,
      },
    );
  });
  return results;
}

/** A connection without a client that minds its manners: what it is told, and with which code it is closed. */
export function rawSocket(
  url: string,
  options: RawSocketOptions & {
    readonly protocol?: string;
    readonly init?: object | null;
    /** The address as it is written. */
    readonly path?: string;
  } = {},
) {
  const { path = '/graphql' } = options;
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, options.protocol ?? PROTOCOL, options);
  const heard: { type: string; id?: string; payload?: unknown }[] = [];
  socket.on('message', (data: Buffer) => heard.push(JSON.parse(`${data}`)));
  const closed = new Promise<number>((resolve) => {
    socket.once('close', (code: number) => resolve(code));
  });
  const refused = new Promise<number>((resolve) => {
    socket.once('unexpected-response', (_request: unknown, response: { statusCode: number }) =>
      resolve(response.statusCode),
    );
  });
  socket.on('error', () => {});
  const say = (message: unknown) => socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  const open = new Promise<void>((resolve) => {
    socket.once('open', () => {
      if (options.init !== null) say({ type: 'connection_init', payload: options.init ?? {} });
      resolve();
    });
  });
  const subscribe = (id: string, query: string, more: object = {}) =>
    say({ id, type: 'subscribe', payload: { query, ...more } });
  return { socket, heard, closed, refused, open, say, subscribe };
}
