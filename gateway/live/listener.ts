import type { FastifyReply, FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import { AgonError, isAgonError } from '../../services/kernel/index.js';
import { callerAt, Seats } from '../caller.js';

/** Whoever leaves this much unread is not reading. */
const UNREAD_BYTES_MAX = 256 * 1024;
/** Proxies close what is silent for long. */
const BEAT_MS = 15_000;
const LISTENERS_MAX = 2_000;
const LISTENERS_PER_ADDRESS_MAX = 100;
/** WebSocket: come back later, with the last id. */
const TRY_AGAIN = 1013;
const POLICY = 1008;

/** One who hears, by server-sent events or by a WebSocket: the same ids, names and data. */
export interface Listener {
  tell(event: string, data: string, id?: string): void;
  /** Bytes that are told and not taken yet. */
  unread(): number;
  end(): void;
  onLeave(leave: () => void): void;
}

/** What a listener is let in by: where it calls from, and what it may still hear, which is asked again at every beat. */
export interface Admission {
  readonly request: FastifyRequest;
  /** Refuses with AUTH.* once the right is gone. */
  recheck?(): Promise<void>;
}

/** How many listen at a time: each costs a connection and memory. */
export class Listeners {
  private readonly seats: Seats;
  private readonly most: number;
  private readonly beatMs: number;

  constructor({ most = LISTENERS_MAX, perAddressMax = LISTENERS_PER_ADDRESS_MAX, beatMs = BEAT_MS } = {}) {
    this.seats = new Seats(most, perAddressMax);
    this.most = most;
    this.beatMs = beatMs;
  }

  assertRoom({ ip }: Pick<FastifyRequest, 'ip'>): void {
    if (this.seats.hasRoom(callerAt(ip))) return;
    throw new AgonError('LIVE.FULL', `${this.most} listeners, and a few of each address, are all this gateway takes.`);
  }

  bySse(admission: Admission, reply: FastifyReply): Listener {
    const { request } = admission;
    const { raw } = reply.hijack();
    const write = (text: string) => {
      if (raw.writableEnded) return;
      raw.write(text);
      // Dropped, not slowed down for: it comes back with its last id and misses nothing.
      if (raw.writableLength > UNREAD_BYTES_MAX) raw.destroy();
    };
    const kind = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' };
    raw.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...kind });
    request.raw.socket.setNoDelay(true);
    write(': what happens\n\n');
    this.enter(admission, (leave) => raw.once('close', leave), {
      beat: () => write(': still here\n\n'),
      end: () => raw.end(),
    });
    return {
      tell: (event, data, id) => write(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`),
      unread: () => raw.writableLength,
      end: () => raw.end(),
      onLeave: (leave) => raw.once('close', leave),
    };
  }

  bySocket(admission: Admission, socket: WebSocket): Listener {
    const drop = () => {
      socket.close(TRY_AGAIN, 'too slow');
      // A goodbye stands behind all that is unread; who does not read does not hear it either.
      socket.terminate();
    };
    this.enter(admission, (leave) => socket.once('close', leave), {
      beat: () => socket.ping(),
      end: () => socket.close(POLICY, 'no longer allowed'),
    });
    // Nothing is expected to be said here; an error is followed by the end.
    socket.on('error', () => {});
    return {
      tell: (event, data, id) => {
        if (socket.readyState !== socket.OPEN) return;
        socket.send(
          `{${id === undefined ? '' : `"id":${JSON.stringify(id)},`}"event":${JSON.stringify(event)},"data":${data}}`,
        );
        if (socket.bufferedAmount > UNREAD_BYTES_MAX) drop();
      },
      unread: () => socket.bufferedAmount,
      end: () => socket.close(1000),
      onLeave: (leave) => socket.once('close', leave),
    };
  }

  private enter(
    { request, recheck }: Admission,
    onLeave: (leave: () => void) => void,
    { beat, end }: { beat(): void; end(): void },
  ): void {
    const leave = this.seats.take(callerAt(request.ip));
    // Many may have been let through to here at once.
    if (!leave) {
      end();
      return;
    }
    const timer = setInterval(() => {
      beat();
      // Only who is refused has to go: when nobody can be looked up at the moment, all stay.
      recheck?.().catch((error: unknown) => isAgonError(error) && error.code.startsWith('AUTH.') && end());
    }, this.beatMs);
    onLeave(() => {
      leave();
      clearInterval(timer);
    });
  }
}
