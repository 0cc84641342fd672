import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { ClientNote, Hello, PlayRequest, PlayResponse, ServerNote } from '../../proto/gen/agon/arena/v1/arena.js';
import { refusal } from '../../proto/status.js';
import { AgonError } from '../../services/kernel/index.js';
import type { PlaySession, PlaySessions } from './play-sessions.js';

export type PlayCall = ServerDuplexStream<PlayRequest, PlayResponse>;

export interface StreamPorts {
  readonly sessions: PlaySessions;
  readonly pingMs: number;
  /** Matches at a time on one stream. */
  readonly capacityMax: number;
  /** Refuses a hello of somebody who may not play for the agent. */
  admit(hello: Hello): Promise<{ readonly keyId: string; readonly games: readonly string[] }>;
  /** Refuses once whoever greeted may not play any more: keys are revoked, and sessions end. */
  recheck(hello: Hello): Promise<void>;
  onInternalError(error: unknown): void;
}

/** Notes that wait for a reader; whoever lets more pile up is let go, and finds everything again when it comes back. */
const OUTBOX_MAX = 8_192;
const NOTES_A_MESSAGE = 256;
/** Notes that nobody asked for: a burst is forgiven, a flood is not. */
const STRIKES = { burst: 200, perSecond: 20 };

/** One agent's stream: greets, passes notes on in both directions, and keeps it alive. */
export class PlayStream {
  private session: PlaySession | undefined;
  private hello: Hello | undefined;
  private outbox: ServerNote[] = [];
  private scheduled = false;
  private full = false;
  private ended = false;
  private greeting = false;
  private heardMs = performance.now();
  private strikes = { left: STRIKES.burst, atMs: performance.now() };
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly call: PlayCall,
    private readonly ports: StreamPorts,
  ) {
    call.on('data', ({ notes }: PlayRequest) => this.hear(notes));
    call.on('drain', () => {
      this.full = false;
      this.flush();
    });
    call.on('end', () => this.finish(() => call.end()));
    call.on('cancelled', () => this.finish()).on('error', () => this.finish());
    this.timer = setInterval(() => this.beat(), ports.pingMs);
    this.timer.unref();
  }

  end(why: AgonError): void {
    this.finish(() => {
      const { code, message } = why;
      this.outbox.push({ what: { $case: 'goingAway', goingAway: { code, message } } });
      if (!this.full) this.call.write({ notes: this.outbox.splice(0) });
      this.call.emit('error', refusal(why, this.ports.onInternalError));
    });
  }

  private hear(notes: readonly ClientNote[]): void {
    this.heardMs = performance.now();
    for (const { what } of notes) {
      if (this.ended) return;
      if (what?.$case === 'hello') this.greet(what.hello);
      else if (what?.$case === 'action' && this.session) {
        if (!this.ports.sessions.act(this.session, what.action)) this.strike();
      } else if (what?.$case === 'ping') {
        this.send({ $case: 'pong', pong: what.ping });
        this.strike();
      } else this.strike();
    }
  }

  private greet(hello: Hello): void {
    if (this.greeting) {
      this.end(new AgonError('PLAY.TWO_HELLOS', 'A stream is for one agent, greeted once.'));
      return;
    }
    this.greeting = true;
    this.ports.admit(hello).then(
      ({ keyId, games }) => this.enter(hello, keyId, games),
      (error: unknown) => this.end(error instanceof AgonError ? error : this.internal(error)),
    );
  }

  private enter(hello: Hello, keyId: string, games: readonly string[]): void {
    if (this.ended) return;
    const { agent: agentId, capacity: asked, openMatches: believed } = hello;
    this.hello = hello;
    const { sessions, capacityMax, pingMs } = this.ports;
    const capacity = asked === 0 ? capacityMax : Math.min(asked, capacityMax);
    const session: PlaySession = {
      agentId,
      keyId,
      games,
      capacity,
      send: (note) => this.send(note),
      end: (why) => this.end(why),
    };
    this.session = session;
    sessions.enter(session, believed, (openMatches) => {
      const limits = { pingMs, capacity, actionBytesMax: sessions.actionBytesMax };
      this.send({ $case: 'welcome', welcome: { agent: agentId, openMatches, ...limits } });
    });
  }

  private send(what: NonNullable<ServerNote['what']>): void {
    if (this.ended) return;
    this.outbox.push({ what });
    if (this.outbox.length > OUTBOX_MAX) {
      this.end(new AgonError('PLAY.SLOW_READER', 'The agent does not read what it is sent.'));
    }
    if (this.scheduled || this.full) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.flush();
    });
  }

  private flush(): void {
    while (!this.ended && !this.full && this.outbox.length > 0) {
      this.full = !this.call.write({ notes: this.outbox.splice(0, NOTES_A_MESSAGE) });
    }
  }

  private beat(): void {
    const silentMs = performance.now() - this.heardMs;
    if (!this.session) this.end(new AgonError('PLAY.NO_HELLO', 'The stream did not say for whom it plays.'));
    if (silentMs > 3 * this.ports.pingMs) this.end(new AgonError('PLAY.SILENT', 'Nothing was heard for too long.'));
    this.send({ $case: 'ping', ping: { nonce: BigInt(Math.round(performance.now())) } });
    if (this.hello) this.ports.recheck(this.hello).catch((error: unknown) => this.doubt(error));
  }

  /** Only who is refused has to go: when nobody can be looked up at the moment, all stay. */
  private doubt(error: unknown): void {
    if (error instanceof AgonError && error.code.startsWith('AUTH.')) this.end(error);
    else this.ports.onInternalError(error);
  }

  /** A pong is always one too many or the one that was asked for: the bucket tells them apart. */
  private strike(): void {
    const now = performance.now();
    const grown = this.strikes.left + ((now - this.strikes.atMs) / 1000) * STRIKES.perSecond;
    this.strikes = { left: Math.min(STRIKES.burst, grown) - 1, atMs: now };
    if (this.strikes.left < 0) this.end(new AgonError('PLAY.FLOOD', 'Too many notes that nobody asked for.'));
  }

  private internal(error: unknown): AgonError {
    this.ports.onInternalError(error);
    return new AgonError('INTERNAL', 'Something went wrong inside Agon. The operator finds it in the log.');
  }

  private finish(last: () => void = () => {}): void {
    if (this.ended) return;
    this.ended = true;
    clearInterval(this.timer);
    if (this.session) this.ports.sessions.leave(this.session);
    last();
  }
}
