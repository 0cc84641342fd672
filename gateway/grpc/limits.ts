import type { Socket } from 'node:net';
import { type Metadata, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js';
import { refusal } from '../../proto/status.js';
import { AgonError, type RateLimits } from '../../services/kernel/index.js';
import { assertWithin, callerAt, isLocal, RATES, Seats } from '../caller.js';

/** What one caller, and all of them, may hold open at a time. */
export const grpcLimits = {
  connectionsMax: 4_096,
  connectionsPerAddressMax: 256,
  callsMax: 16_384,
  callsPerAddressMax: 1_024,
};

export interface GrpcLimits {
  readonly limits: RateLimits;
  /** How many proxies stand before the endpoint. With none, callers on this machine are not limited by address. */
  readonly proxies: number;
  readonly most?: typeof grpcLimits | undefined;
}

/**
 * The limits that hold before anybody is known. With proxies, connections are theirs to count: here they all come from
 * the same few addresses.
 */
export function limitGrpc({ limits, proxies, most = grpcLimits }: GrpcLimits): {
  readonly interceptor: ServerInterceptor;
  admits(socket: Socket): boolean;
} {
  const connections = new Seats(most.connectionsMax, most.connectionsPerAddressMax);
  const calls = new Seats(most.callsMax, most.callsPerAddressMax);
  const admits = (socket: Socket) => {
    const ip = socket.remoteAddress ?? '';
    if (proxies > 0 || isLocal(ip, proxies)) return true;
    const leave = connections.take(callerAt(ip));
    if (leave) socket.once('close', leave);
    return leave !== undefined;
  };
  /** Gives back how to leave. */
  const enter = async (ip: string): Promise<() => void> => {
    if (isLocal(ip, proxies)) return () => {};
    const caller = callerAt(ip);
    await assertWithin(limits, `address:${caller}`, RATES.address, 'one address');
    const leave = calls.take(caller);
    if (leave) return leave;
    throw new AgonError('LIMITS.TOO_MANY_CALLS', 'One address has this many calls open at a time, and no more.', {
      retryAfterMs: 1_000,
    });
  };
  const interceptor: ServerInterceptor = (_method, call) => {
    let over = false;
    let leave = () => {};
    const done = () => {
      over = true;
      leave();
    };
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, pass) => {
            enter(addressOf(call.getPeer(), metadata, proxies)).then(
              (left) => {
                leave = left;
                if (over) leave();
                else pass(metadata);
              },
              (error: unknown) => call.sendStatus(refusal(error)),
            );
          },
          onCancel: done,
        }),
      sendStatus: (sent, next) => {
        done();
        next(sent);
      },
    });
  };
  return { interceptor, admits };
}

/** As proxies tell it, and only as far as there are proxies of ours: what stands before is anybody's word. */
function addressOf(peer: string, metadata: Metadata, proxies: number): string {
  const ip = peer.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  const told = metadata.get('x-forwarded-for').flatMap((value) => String(value).split(','));
  const way = [...told.map((each) => each.trim()), ip];
  return way[Math.max(0, way.length - 1 - proxies)] ?? ip;
}
