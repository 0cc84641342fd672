import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type {
  ActionRefused,
  ClientNote,
  MatchResult,
  MatchStarted,
  Observation,
  PlayRequest,
  PlayResponse,
  ServerNote,
} from '../../proto/gen/agon/arena/v1/arena.js';
import { Arena, type ArenaOptions, type QueueRequest } from './arena.js';
import { ArenaError, arenaError } from './errors.js';
import type { Actions, GameName, Observations } from './games.js';

/** What is known about the turn besides the observation; what is left of it, and of the bank for the whole match. */
export type Turn = Readonly<Omit<Observation, 'observationJson'>>;

/** An action with the agent's reasons, for those who run the arena. */
export class Decision<Action> {
  constructor(
    readonly action: Action,
    readonly why: { readonly reasoning?: string; readonly confidence?: number } = {},
  ) {}
}

export interface PlayOptions<Game extends GameName = GameName> extends ArenaOptions {
  /** Like ada.bot. */
  readonly agent: string;
  readonly games: readonly Game[];
  act(
    observation: Observations[Game],
    turn: Turn,
  ): Actions[Game] | Decision<Actions[Game]> | Promise<Actions[Game] | Decision<Actions[Game]>>;
  /** Joins the queue for matches of the first game, one after the other. Without it, matches are waited for. */
  readonly queue?: Omit<QueueRequest, 'agent' | 'game'> & { readonly game?: Game };
  /** Ends after this many results; plays on until `signal` otherwise. */
  readonly matches?: number;
  /** How many of them at a time. */
  readonly concurrency?: number;
  /** Registers the agent first, which takes a key with the scope "submit". True unless said otherwise. */
  readonly register?: boolean;
  readonly signal?: AbortSignal;
  onStarted?(match: MatchStarted): void;
  onResult?(result: MatchResult): void;
  onRefused?(refused: ActionRefused): void;
  /** The stream was lost, and is opened again after this time. */
  onReconnect?(why: ArenaError, afterMs: number): void;
}

const BACKOFF_MS = { first: 100, max: 5_000 };
const CLIENT = 'agon-sdk-typescript/0.1';

/**
 * Plays as an agent from outside until enough matches are over, or the signal says so. A stream that is lost is opened
 * again, and what was asked meanwhile is answered then.
 *
 * @example
 * await play({ arena: '127.0.0.1:4602', key, agent: 'ada.bot', games: ['tic-tac-toe'], act: ({ legal }) => legal[0]! });
 */
export async function play<Game extends GameName>(options: PlayOptions<Game>): Promise<readonly MatchResult[]> {
  const player = new Player(options as unknown as PlayOptions);
  try {
    return await player.run();
  } finally {
    player.close();
  }
}

interface Thought {
  readonly turn: number;
  /** Undefined while the agent thinks. */
  answer: ClientNote | undefined;
}

class Player {
  private readonly arena: Arena;
  private readonly stopping = new AbortController();
  private readonly results = new Map<string, MatchResult>();
  /** What each match that is going on was asked last. */
  private readonly open = new Map<string, Thought | undefined>();
  private readonly waiting = new Map<string, () => void>();
  private stream: ClientDuplexStream<PlayRequest, PlayResponse> | undefined;
  private outbox: ClientNote[] = [];
  private scheduled = false;
  private welcomed = () => {};
  private finish: () => void = () => {};
  private fail: (error: unknown) => void = () => {};

  constructor(private readonly options: PlayOptions) {
    this.arena = new Arena(options);
    options.signal?.addEventListener('abort', () => this.stopping.abort(), { once: true });
    if (options.signal?.aborted) this.stopping.abort();
  }

  async run(): Promise<readonly MatchResult[]> {
    const { agent, games, register = true, matches = Number.POSITIVE_INFINITY, concurrency = 1, queue } = this.options;
    const [owner = '', name = ''] = agent.split('.');
    if (register) await this.patiently(() => this.arena.registerAgent(owner, name, games));
    const ended = new Promise<void>((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
      this.stopping.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    const ready = new Promise<void>((resolve) => {
      this.welcomed = resolve;
    });
    this.connect().catch(this.fail);
    if (queue) {
      await Promise.race([ready, ended]);
      let left = matches;
      const next = () => left-- > 0;
      const lane = async () => {
        while (!this.stopping.signal.aborted && next()) await this.playOne(queue);
      };
      Promise.all(Array.from({ length: concurrency }, lane)).then(this.finish, this.fail);
    }
    await ended;
    return [...this.results.values()];
  }

  close(): void {
    this.stopping.abort();
    this.stream?.cancel();
    this.arena.close();
  }

  private async playOne(queue: NonNullable<PlayOptions['queue']>): Promise<void> {
    const { agent, games } = this.options;
    const request = { agent, game: games[0] ?? '', ...queue };
    while (!this.stopping.signal.aborted) {
      const joined = await this.patiently(() => this.arena.joinQueue(request, this.stopping.signal));
      if (!joined) continue;
      if (!this.results.has(joined.matchId)) {
        if (!this.open.has(joined.matchId)) this.open.set(joined.matchId, undefined);
        await new Promise<void>((resolve) => this.waiting.set(joined.matchId, resolve));
      }
      return;
    }
  }

  /** Tries again what the arena cannot do at the moment. */
  private async patiently<T>(work: () => Promise<T>): Promise<T | undefined> {
    for (let failures = 0; !this.stopping.signal.aborted; failures++) {
      try {
        return await work();
      } catch (thrown) {
        const error = arenaError(thrown);
        if (this.stopping.signal.aborted) return undefined;
        if (!error.retryable) throw error;
        await this.pause(failures, error);
      }
    }
    return undefined;
  }

  private async pause(failures: number, { retryAfterMs = 0 }: ArenaError): Promise<number> {
    const most = Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** Math.min(failures, 10));
    // Those who were cut off together do not come back together, and nobody sooner than the arena asks for.
    const afterMs = Math.round(retryAfterMs + most * (0.5 + Math.random() / 2));
    await sleep(afterMs, undefined, { signal: this.stopping.signal }).catch(() => {});
    return afterMs;
  }

  private async connect(): Promise<void> {
    for (let failures = 0; !this.stopping.signal.aborted; failures++) {
      let greeted = false;
      const error = await this.converse(() => {
        greeted = true;
      });
      if (this.stopping.signal.aborted) return;
      if (!error.retryable) throw error;
      if (greeted) failures = 0;
      const afterMs = await this.pause(failures, error);
      this.options.onReconnect?.(error, afterMs);
    }
  }

  /** One stream from its hello to its end; resolves with why it ended. */
  private converse(greeted: () => void): Promise<ArenaError> {
    return new Promise((resolve) => {
      const stream = this.arena.stream();
      this.stream = stream;
      let last: ArenaError | undefined;
      stream.on('data', ({ notes }: PlayResponse) => {
        for (const { what } of notes) {
          if (what?.$case === 'welcome') {
            greeted();
            this.welcomed();
          }
          if (what?.$case === 'goingAway') last = new ArenaError(what.goingAway.code, what.goingAway.message);
          else this.hear(what);
        }
      });
      stream.on('error', (error) => {
        // The goodbye has the reason; how the stream ended may say besides when to come back.
        const told = arenaError(error);
        resolve(last === undefined || last.code === told.code ? told : last);
      });
      stream.on('end', () => resolve(last ?? new ArenaError('NET.UNAVAILABLE', 'The stream ended.')));
      const { agent, games, concurrency = 0, queue } = this.options;
      const capacity = queue ? 0 : concurrency;
      const openMatches = [...this.open.keys()];
      this.outbox = [];
      const hello = { agent, games: [...games], capacity, client: CLIENT, openMatches };
      stream.write({ notes: [{ what: { $case: 'hello', hello } }] });
    });
  }

  private hear(what: ServerNote['what']): void {
    switch (what?.$case) {
      case 'started':
        this.open.set(what.started.matchId, this.open.get(what.started.matchId));
        // Played again from the start: what was thought in the attempt before is void.
        if (!what.started.resumed) this.open.set(what.started.matchId, undefined);
        this.options.onStarted?.(what.started);
        break;
      case 'observation':
        this.think(what.observation).catch(this.fail);
        break;
      case 'result':
        this.over(what.result);
        break;
      case 'refused':
        this.options.onRefused?.(what.refused);
        break;
      case 'ping':
        this.send({ what: { $case: 'pong', pong: what.ping } });
        break;
    }
  }

  private async think(observation: Observation): Promise<void> {
    const { matchId, turn, seat, turnLeftMs, bankLeftMs, deadline } = observation;
    const before = this.open.get(matchId);
    if (before?.turn === turn) {
      // Asked again, because the stream was cut: the answer got lost, or is still being thought about.
      if (before.answer) this.send(before.answer);
      return;
    }
    const thought: Thought = { turn, answer: undefined };
    this.open.set(matchId, thought);
    const seen = JSON.parse(observation.observationJson) as Observations[GameName];
    const startedMs = performance.now();
    const acted = await this.options.act(seen, { matchId, turn, seat, turnLeftMs, bankLeftMs, deadline });
    const computeMs = performance.now() - startedMs;
    const { action, why } = acted instanceof Decision ? acted : { action: acted, why: {} };
    const said = { reasoning: why.reasoning, confidence: why.confidence };
    const actionJson = JSON.stringify(action) ?? 'null';
    thought.answer = { what: { $case: 'action', action: { matchId, turn, actionJson, computeMs, ...said } } };
    if (this.open.get(matchId) === thought) this.send(thought.answer);
  }

  private over(result: MatchResult): void {
    const { matchId } = result;
    this.open.delete(matchId);
    if (this.results.has(matchId)) return;
    this.results.set(matchId, result);
    this.options.onResult?.(result);
    this.waiting.get(matchId)?.();
    this.waiting.delete(matchId);
    const { queue, matches = Number.POSITIVE_INFINITY } = this.options;
    if (!queue && this.results.size >= matches) this.finish();
  }

  /** What is said in the same moment travels together. */
  private send(note: ClientNote): void {
    this.outbox.push(note);
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      const notes = this.outbox.splice(0);
      if (notes.length > 0 && this.stream?.writable) this.stream.write({ notes });
    });
  }
}
