import type { Action, MatchResult, ServerNote } from '../../proto/gen/agon/arena/v1/arena.js';
import { AgonError, type Clock } from '../../services/kernel/index.js';

/** The stream of one agent. */
export interface PlaySession {
  readonly agentId: string;
  readonly keyId: string;
  readonly games: readonly string[];
  /** Matches at a time. */
  readonly capacity: number;
  send(note: NonNullable<ServerNote['what']>): void;
  /** Ends the stream with this reason. */
  end(why: AgonError): void;
}

interface Pending {
  readonly turn: number;
  readonly json: string;
  readonly askedMs: number;
  readonly turnMs: number;
  readonly bankMs: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: AgonError) => void;
}

interface Answer {
  readonly action: { readonly value: unknown; readonly reasoning: string; readonly computeMs: number } | undefined;
  readonly wallMs: number;
}

interface At {
  readonly matchId: string;
  readonly agentId: string;
  readonly game: string;
  readonly seat: number;
}

interface Terms {
  readonly seats: number;
  readonly turnMs: number;
  readonly bankMs: number;
}

export interface PlaySessionsOptions {
  readonly clock: Clock;
  /** Milliseconds that only go forward; for measuring. */
  readonly now?: () => number;
  readonly actionBytesMax?: number;
}

/** Coarse on purpose: one timer for all, and nobody loses a match by a few hundredths of a second. */
const SWEEP_MS = 25;
const ACTION_BYTES_MAX = 4 * 1024;
const REASONING_MAX = 2_000;
const RESULTS_KEPT = 64;
const AGENTS_KEPT = 4_096;

/**
 * Where agents from outside and the matches they sit in meet. It knows who is connected and what each of them was asked,
 * and nothing of games. A question outlives the stream: whoever comes back is asked again, with the time that is left.
 */
export class PlaySessions {
  private readonly sessions = new Map<string, PlaySession>();
  /** By agent, then by match. */
  private readonly connections = new Map<string, Map<string, SeatConnection>>();
  private readonly results = new Map<string, readonly MatchResult[]>();
  readonly clock: Clock;
  readonly now: () => number;
  readonly actionBytesMax: number;
  private readonly sweeper: NodeJS.Timeout;

  constructor({ clock, now = () => performance.now(), actionBytesMax = ACTION_BYTES_MAX }: PlaySessionsOptions) {
    this.clock = clock;
    this.now = now;
    this.actionBytesMax = actionBytesMax;
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS);
    this.sweeper.unref();
  }

  get connected(): number {
    return this.sessions.size;
  }

  isConnected(agentId: string): boolean {
    return this.sessions.has(agentId);
  }

  /** Whether the agent is there and could begin another match of this game. */
  hasRoom(agentId: string, game: string): boolean {
    const session = this.sessions.get(agentId);
    return session !== undefined && plays(session, game) && this.playing(agentId) < session.capacity;
  }

  /** Takes a stream in, in the place of an older one of the same agent, and tells it again what it was asked. */
  enter(session: PlaySession, believed: readonly string[], welcome: (openMatches: string[]) => void): void {
    const { agentId } = session;
    const before = this.sessions.get(agentId);
    this.sessions.set(agentId, session);
    before?.end(new AgonError('PLAY.REPLACED', `Another stream plays for ${agentId} now.`));
    const connections = [...(this.connections.get(agentId)?.values() ?? [])];
    welcome(connections.filter((connection) => connection.begun).map((connection) => connection.at.matchId));
    for (const connection of connections) if (connection.begun) connection.resume(session);
    for (const result of this.results.get(agentId) ?? []) {
      if (believed.includes(result.matchId)) session.send({ $case: 'result', result });
    }
    this.begin(agentId);
  }

  leave(session: PlaySession): void {
    if (this.sessions.get(session.agentId) === session) this.sessions.delete(session.agentId);
  }

  /** Whether the action answered a question. What does not is refused, and changes nothing. */
  act(session: PlaySession, action: Action): boolean {
    const connection = this.connections.get(session.agentId)?.get(action.matchId);
    const refused = connection ? connection.act(session, action) : NO_MATCH;
    if (!refused) return true;
    const { matchId, turn } = action;
    session.send({ $case: 'refused', refused: { matchId, turn, ...refused } });
    return false;
  }

  sit(at: At): SeatConnection {
    const mine = this.connections.get(at.agentId) ?? new Map<string, SeatConnection>();
    this.connections.set(at.agentId, mine);
    const connection = new SeatConnection(at, this);
    mine.set(at.matchId, connection);
    return connection;
  }

  sessionOf(agentId: string): PlaySession | undefined {
    return this.sessions.get(agentId);
  }

  /** Takes back what sat in a match. */
  rise(connection: SeatConnection): void {
    const { agentId, matchId } = connection.at;
    const mine = this.connections.get(agentId);
    if (mine?.get(matchId) === connection) mine.delete(matchId);
    if (mine?.size === 0) this.connections.delete(agentId);
    this.begin(agentId);
  }

  /** Ends the streams of a key that was revoked. */
  revoke(keyId: string): void {
    for (const session of this.sessions.values()) {
      if (session.keyId === keyId) session.end(new AgonError('PLAY.REVOKED', 'The API key was revoked.'));
    }
  }

  /** Ends what is out of time. */
  sweep(): void {
    const now = this.now();
    for (const connections of this.connections.values())
      for (const connection of connections.values()) connection.expire(now);
  }

  close(): void {
    clearInterval(this.sweeper);
    for (const session of this.sessions.values()) {
      session.end(new AgonError('PLAY.SHUTDOWN', 'The arena is stopping. Come back in a moment.'));
    }
  }

  /** For an agent that was away, or whose stream was cut before it could read. */
  keep(agentId: string, result: MatchResult): void {
    const kept = this.results.get(agentId) ?? [];
    this.results.delete(agentId);
    this.results.set(agentId, [...kept.slice(1 - RESULTS_KEPT), result]);
    if (this.results.size > AGENTS_KEPT) this.results.delete(this.results.keys().next().value as string);
  }

  /** Tells of matches that wait for this agent, as far as it has room for them. */
  begin(agentId: string): void {
    const session = this.sessions.get(agentId);
    if (!session) return;
    let playing = this.playing(agentId);
    for (const connection of this.connections.get(agentId)?.values() ?? []) {
      if (playing >= session.capacity) return;
      if (connection.waiting && plays(session, connection.at.game)) {
        connection.begin(session);
        playing += 1;
      }
    }
  }

  private playing(agentId: string): number {
    let count = 0;
    for (const connection of this.connections.get(agentId)?.values() ?? []) if (connection.begun) count += 1;
    return count;
  }
}

const plays = ({ games }: PlaySession, game: string) => games.length === 0 || games.includes(game);

type Refusal = { readonly code: string; readonly message: string };
const NO_MATCH: Refusal = { code: 'PLAY.NO_MATCH', message: 'The agent does not sit in this match, or it is over.' };
const NOT_ASKED: Refusal = { code: 'PLAY.NOT_ASKED', message: 'This turn was not asked for, or was answered before.' };
const LATE: Refusal = { code: 'PLAY.LATE', message: 'The time was up when the action came.' };
const TOO_LARGE: Refusal = { code: 'PLAY.TOO_LARGE', message: 'The action is too large.' };
const BAD_JSON: Refusal = { code: 'PLAY.BAD_JSON', message: 'The action is not JSON. The clock is running.' };

/** One agent in one match. */
class SeatConnection {
  begun = false;
  private terms: Terms | undefined;
  private starting:
    | { readonly untilMs: number; readonly resolve: (came: boolean) => void; reject: (e: AgonError) => void }
    | undefined;
  private pending: Pending | undefined;
  private gone = false;
  private wallMs = 0;
  private claimedMs = 0;
  private readonly moves: { turn: number; actionJson: string }[] = [];

  constructor(
    readonly at: At,
    private readonly sessions: PlaySessions,
  ) {}

  get waiting(): boolean {
    return this.starting !== undefined;
  }

  start(terms: Terms, withinMs: number): Promise<boolean> {
    this.terms = terms;
    return new Promise((resolve, reject) => {
      if (this.gone) return reject(closed());
      this.starting = { untilMs: this.sessions.now() + withinMs, resolve, reject };
      this.sessions.begin(this.at.agentId);
    });
  }

  begin(session: PlaySession): void {
    const { resolve } = this.starting ?? {};
    this.starting = undefined;
    this.begun = true;
    this.sayStarted(session, false);
    resolve?.(true);
  }

  resume(session: PlaySession): void {
    this.sayStarted(session, true);
    if (this.pending) this.sayObservation(session, this.pending);
  }

  ask(observation: { readonly turn: number }, left: { turnMs: number; bankMs: number }): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.gone) return reject(closed());
      const json = JSON.stringify(observation);
      const pending = { turn: observation.turn, json, askedMs: this.sessions.now(), ...left, resolve, reject };
      this.pending = pending;
      const session = this.sessions.sessionOf(this.at.agentId);
      if (session) this.sayObservation(session, pending);
    });
  }

  /** Why the action changes nothing; undefined when it was taken. */
  act(session: PlaySession, { turn, actionJson, reasoning = '', computeMs = 0 }: Action): Refusal | undefined {
    const pending = this.pending;
    if (pending?.turn !== turn) return NOT_ASKED;
    const wallMs = this.sessions.now() - pending.askedMs;
    if (wallMs > pending.turnMs + pending.bankMs) {
      this.expire(this.sessions.now());
      return LATE;
    }
    if (actionJson.length > this.sessions.actionBytesMax) return TOO_LARGE;
    let value: unknown;
    try {
      value = JSON.parse(actionJson);
    } catch {
      return BAD_JSON;
    }
    this.pending = undefined;
    this.moves.push({ turn, actionJson });
    // It cannot have thought for longer than it took, nor for less than no time.
    const claimed = Math.min(Math.max(0, Number.isFinite(computeMs) ? computeMs : 0), wallMs);
    this.wallMs += wallMs;
    this.claimedMs += claimed;
    session.send({ $case: 'accepted', accepted: { matchId: this.at.matchId, turn, wallMs } });
    pending.resolve({ action: { value, reasoning: reasoning.slice(0, REASONING_MAX), computeMs: claimed }, wallMs });
    return undefined;
  }

  tell({ winner, score, reason }: { winner: number | null; score: number; reason: string }): void {
    const { matchId, game, seat } = this.at;
    const spent = { wallMs: this.wallMs, claimedComputeMs: this.claimedMs };
    const result = { matchId, game, seat, winner: winner ?? undefined, score, reason, ...spent };
    this.sessions.keep(this.at.agentId, result);
    this.sessions.sessionOf(this.at.agentId)?.send({ $case: 'result', result });
  }

  expire(now: number): void {
    if (this.starting && now > this.starting.untilMs) {
      const { resolve } = this.starting;
      this.starting = undefined;
      resolve(false);
    }
    const pending = this.pending;
    if (!pending || now - pending.askedMs <= pending.turnMs + pending.bankMs) return;
    this.pending = undefined;
    pending.resolve({ action: undefined, wallMs: now - pending.askedMs });
  }

  leave(): void {
    if (this.gone) return;
    this.gone = true;
    this.pending?.reject(closed());
    this.starting?.reject(closed());
    this.pending = undefined;
    this.starting = undefined;
    this.sessions.rise(this);
  }

  private sayStarted(session: PlaySession, resumed: boolean): void {
    const { matchId, game, seat } = this.at;
    const terms = this.terms ?? { seats: 0, turnMs: 0, bankMs: 0 };
    const started = { matchId, game, seat, ...terms, resumed, moves: resumed ? [...this.moves] : [] };
    session.send({ $case: 'started', started });
  }

  private sayObservation(session: PlaySession, { turn, json, askedMs, turnMs, bankMs }: Pending): void {
    const { matchId, seat } = this.at;
    const spentMs = this.sessions.now() - askedMs;
    const leftMs = Math.max(0, Math.round(turnMs + bankMs - spentMs));
    const turnLeftMs = Math.max(0, Math.round(turnMs - spentMs));
    const deadline = new Date(Date.parse(this.sessions.clock()) + leftMs).toISOString();
    const time = { turnLeftMs, bankLeftMs: leftMs - turnLeftMs, deadline };
    session.send({ $case: 'observation', observation: { matchId, turn, seat, observationJson: json, ...time } });
  }
}

const closed = () => new AgonError('SANDBOX.CLOSED', 'The match is not played on here.');
