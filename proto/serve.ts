import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import {
  type handleUnaryCall,
  type Metadata,
  Server,
  ServerCredentials,
  type ServerInterceptor,
  type ServerWritableStream,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { AgonError } from '../services/kernel/index.js';
import {
  HealthCheckResponse_ServingStatus as Health,
  type HealthServer,
  HealthService,
} from './gen/grpc/health/v1/health.js';
import { ServerReflectionService } from './gen/grpc/reflection/v1/reflection.js';
import { reflection } from './reflection.js';
import { refusal } from './status.js';

export interface Serving {
  /** host:port. */
  readonly address: string;
  /** Ends waiting calls, lets the others finish for a moment, and closes. */
  close(): Promise<void>;
}

/** Where a server listens, and what is needed to be let in. */
export interface ListenAddress {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** PEM; asked for whenever somebody connects, if it can change. Without it the server speaks in clear. */
  readonly tls?: Tls | (() => Tls) | undefined;
  /** Who looks at every call that comes in. */
  readonly interceptors?: readonly ServerInterceptor[] | undefined;
  /** Says whether somebody who connects may stay. */
  readonly admits?: ((socket: Socket) => boolean) | undefined;
}

export interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Only clients with a certificate of this authority come in. */
  readonly clientCa?: Buffer | undefined;
}

interface ServeOptions extends ListenAddress {
  readonly services: readonly [definition: Parameters<Server['addService']>[0], UntypedServiceImplementation][];
  /** Names that the health service answers for, besides the empty one. */
  readonly names: readonly string[];
  readonly serving: () => boolean;
  /** Whether tools may ask what is served here. */
  readonly reflection?: boolean | undefined;
  /** The largest message, after decompression as well. */
  readonly messageBytesMax?: number;
  /** Calls at a time on one connection; more of them wait, or are refused by HTTP/2 itself. */
  readonly streamsPerConnectionMax?: number;
  /** Aborted when the server closes. */
  readonly closing: AbortController;
}

const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
const STREAMS_PER_CONNECTION_MAX = 1_024;
const CLOSE_MS = 2_000;
const HEALTH_MS = 1_000;

/** A gRPC server with the health service. Without TLS it belongs on a loopback or private address. */
export async function serve(options: ServeOptions): Promise<Serving> {
  const server = new Server({
    'grpc.keepalive_time_ms': 20_000,
    'grpc.keepalive_timeout_ms': 10_000,
    'grpc.max_receive_message_length': options.messageBytesMax ?? MESSAGE_BYTES_MAX,
    'grpc.max_concurrent_streams': options.streamsPerConnectionMax ?? STREAMS_PER_CONNECTION_MAX,
    interceptors: [...(options.interceptors ?? [])],
  });
  for (const [definition, implementation] of options.services) server.addService(definition, implementation);
  server.addService(HealthService, health(options));
  if (options.reflection) {
    server.addService(ServerReflectionService, { ...reflection([...options.names, 'grpc.health.v1.Health']) });
  }
  const { host, closing, admits = () => true } = options;
  const inside = injectorOf(server, options.tls);
  // We listen ourselves: gRPC takes in whoever connects, and who may stay is for us to say.
  const listener = createServer((socket) => (admits(socket) ? inside().injectConnection(socket) : socket.destroy()));
  const port = await listening(listener, host, options.port);
  const close = async () => {
    closing.abort();
    const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => server.forceShutdown(), CLOSE_MS);
      server.tryShutdown(() => {
        clearTimeout(timer);
        resolve();
      });
    });
    await closed;
  };
  return { address: `${host}:${port}`, close };
}

function listening(listener: NetServer, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once('error', (error) => {
      reject(new AgonError('NET.CANNOT_LISTEN', `Cannot listen on ${host}:${port}: ${error.message}.`));
    });
    listener.listen(port, host, () => resolve((listener.address() as AddressInfo).port));
  });
}

/** Another certificate is for those who connect from then on. */
function injectorOf(server: Server, tls: ListenAddress['tls']): () => ReturnType<Server['createConnectionInjector']> {
  const current = typeof tls === 'function' ? tls : () => tls;
  let shown = current();
  let injector = server.createConnectionInjector(credentialsOf(shown));
  return () => {
    const now = current();
    if (now === shown) return injector;
    shown = now;
    injector = server.createConnectionInjector(credentialsOf(now));
    return injector;
  };
}

function credentialsOf(tls: Tls | undefined): ServerCredentials {
  if (!tls) return ServerCredentials.createInsecure();
  const { cert, key, clientCa = null } = tls;
  return ServerCredentials.createSsl(clientCa, [{ private_key: key, cert_chain: cert }], clientCa !== null);
}

/** A call with one answer; whatever is thrown leaves as a refusal. */
export const unary =
  <Request, Response>(
    answer: (request: Request, metadata: Metadata, cancelled: AbortSignal) => Promise<Response>,
    onInternal?: (error: unknown) => void,
  ): handleUnaryCall<Request, Response> =>
  (call, callback) => {
    const cancelled = new AbortController();
    call.on('cancelled', () => cancelled.abort());
    answer(call.request, call.metadata, cancelled.signal).then(
      (response) => callback(null, response),
      (error: unknown) => callback(refusal(error, onInternal)),
    );
  };

/** Sends what comes until the caller leaves. One that does not keep up misses some, and holds up nobody. */
export function feed<Response>(
  call: ServerWritableStream<never, Response>,
  subscribe: (send: (response: Response) => void) => () => void,
  closing: AbortSignal,
): void {
  let open = true;
  let full = false;
  const leave = subscribe((response) => {
    if (open && !full) full = !call.write(response);
  });
  const end = () => {
    if (!open) return;
    open = false;
    leave();
    closing.removeEventListener('abort', end);
    call.end();
  };
  call.on('drain', () => {
    full = false;
  });
  call.on('cancelled', end).on('error', end);
  closing.addEventListener('abort', end, { once: true });
}

function health({ names, serving, closing }: ServeOptions): HealthServer {
  const statusOf = (service: string): Health => {
    if (service !== '' && !names.includes(service)) return Health.SERVICE_UNKNOWN;
    return serving() && !closing.signal.aborted ? Health.SERVING : Health.NOT_SERVING;
  };
  return {
    check: ({ request }, callback) => {
      const found = statusOf(request.service);
      if (found === Health.SERVICE_UNKNOWN) callback({ code: status.NOT_FOUND, details: 'There is no such service.' });
      else callback(null, { status: found });
    },
    watch: (call) => {
      const subscribe = (send: (response: { status: Health }) => void) => {
        let last: Health | undefined;
        const look = () => {
          const now = statusOf(call.request.service);
          if (now !== last) send({ status: now });
          last = now;
        };
        look();
        const timer = setInterval(look, HEALTH_MS);
        return () => {
          clearInterval(timer);
          look();
        };
      };
      feed(call as ServerWritableStream<never, { status: Health }>, subscribe, closing.signal);
    },
  };
}
