import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type AgentRuntime, AgonError, type SeatRuntime } from '../services/kernel/index.js';
import type { AgentInstance, Completion, EgressEndpoint, Fault, Reply, SourceCheck, Usage } from './drivers/driver.js';
import { gameNamed } from './games/index.js';
import { jsonOf } from './json.js';
import type { Limits } from './limits.js';
import type { MatchRecord, TurnRecord } from './referee.js';

/** What the arena asks for: one match between sources that are known by their digests. */
export interface MatchJob {
  readonly matchId: string;
  readonly game: string;
  readonly seed: string;
  /** By seat. */
  readonly agents: readonly MatchAgent[];
  readonly limits?: Partial<Limits>;
}

export interface MatchAgent {
  readonly source: string;
  readonly codeDigest: string;
  /** JavaScript when left out. */
  readonly runtime?: SeatRuntime;
  /** By which it may have been granted egress; code that nobody submitted has none. */
  readonly agentId?: string;
  /** Set by the runner alone. */
  readonly endpoint?: EgressEndpoint | undefined;
}

/** What runs an agent in a cell. One that plays from outside has no code to run. */
export function hostedRuntime({ runtime = 'javascript', agentId = '' }: MatchAgent): AgentRuntime {
  if (runtime !== 'external') return runtime;
  throw new AgonError('SANDBOX.EXTERNAL', `${agentId} plays from outside and has no code that could be run here.`);
}

const driverName = ({ runtime = 'javascript' }: MatchAgent): string =>
  runtime === 'javascript' ? 'wasm' : runtime === 'external' ? runtime : `process/${runtime}`;

/** What a record says of how a match was set up. */
export const setupOf = ({ game, seed, agents }: MatchJob, limits: Limits) => ({
  game: gameNamed(game),
  seed,
  // Which one ran which seat stands in the usage.
  driver: [...new Set(agents.map(driverName))].join('+'),
  agents: agents.map(({ codeDigest }) => codeDigest),
  limits,
});

/** SHA-256 of the source in UTF-8, in hexadecimal: the name by which a record refers to code. */
export const codeDigest = (source: string): string => createHash('sha256').update(source).digest('hex');

export function assertDigest(source: string, claimed: string, details: Record<string, unknown> = {}): void {
  const actual = codeDigest(source);
  if (claimed === actual) return;
  const message = 'The source is not the one that its digest names.';
  throw new AgonError('SANDBOX.DIGEST_MISMATCH', message, { ...details, claimed, actual });
}

/** Code to be seated, and what its sandbox needs to know. */
export interface SeatOrder {
  readonly source: string;
  readonly codeDigest: string;
  readonly runtime: AgentRuntime;
  readonly seed: string;
  readonly seat: number;
  readonly limits: Limits;
}

/** What a cell is asked to do. */
export type CellWork =
  | {
      readonly kind: 'play';
      readonly job: MatchJob;
      readonly limits: Limits;
      /** Whether somebody wants to hear of turns and logs as they happen. */
      readonly live: boolean;
    }
  | { readonly kind: 'check'; readonly source: string; readonly runtime: AgentRuntime; readonly limits: Limits }
  /** One agent alone, for a match whose referee sits elsewhere. Nothing is answered but its calls. */
  | (SeatOrder & { readonly kind: 'seat' })
  | (SeatCall & { readonly kind: 'call' })
  | { readonly kind: 'stand' };

export type ToCell = (CellWork & { readonly order: number }) | { readonly kind: 'leave' };

/** What a referee elsewhere asks of an agent in a cell. */
export interface SeatCall {
  readonly method: 'init' | 'act' | 'onResult';
  readonly argument: unknown;
  readonly fuel: number;
}

/** What an agent's sandbox is, as it is recorded. */
export type SeatDriver = Pick<AgentInstance, 'driver' | 'driverVersion' | 'meter'>;

/** What is heard of a match while it is played. */
export type Progress =
  | { readonly kind: 'turn'; readonly turn: TurnRecord }
  | { readonly kind: 'log'; readonly seat: number; readonly text: string };

/** Tells what is new since it was last called: the turn just completed, and what agents printed. */
export function liveFeed(
  seats: readonly AgentInstance[],
  tell: (progress: Progress) => void,
): (last: TurnRecord | undefined) => void {
  let told = 0;
  const printed = seats.map(() => 0);
  return (last) => {
    if (last && last.turn > told) {
      told = last.turn;
      tell({ kind: 'turn', turn: last });
    }
    for (const [seat, agent] of seats.entries()) {
      const text = agent.log().slice(printed[seat]);
      if (text === '') continue;
      printed[seat] = (printed[seat] ?? 0) + text.length;
      tell({ kind: 'log', seat, text });
    }
  };
}

export type CellAnswer =
  | { readonly kind: 'played'; readonly record: MatchRecord }
  | { readonly kind: 'checked'; readonly check: SourceCheck }
  | { readonly kind: 'seated'; readonly at: SeatDriver }
  | {
      readonly kind: 'answered';
      readonly answer: Completion | Reply | Fault;
      readonly usage: Usage;
      readonly printed: string;
    }
  | { readonly kind: 'stood' }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string };

export type FromCell =
  | { readonly kind: 'ready' }
  | ((CellAnswer | { readonly kind: 'progress'; readonly progress: Progress }) & { readonly order: number });

/**
 * Turn markers go into a nameless file that host and cell share by its descriptor. A cell writes a line there before it
 * lets an agent's code run, so that the host can tell who was on the move even when the cell never speaks again. Unlike
 * a message, a marker wakes nobody up: the host reads the file only after a death.
 */
export const markerFd = 3;

/** Stands after the last line, because what follows may be left over from a longer match. */
const markerEnd = 'end\n';

export class MarkerWriter {
  private position = 0;
  private order = 0;

  constructor(private readonly write: (text: string, position: number) => void) {}

  begin(order: number): void {
    this.order = order;
    this.position = 0;
    this.write(markerEnd, 0);
  }

  turn(seat: number, last: TurnRecord | undefined): void {
    const before = last ? [last.turn, last.seat, last.fuel, last.action] : [];
    const line = `${asciiJson([this.order, seat, ...before])}\n`;
    this.write(line + markerEnd, this.position);
    this.position += line.length;
  }
}

export interface Markers {
  /** The seat whose code ran last, or undefined when none did. */
  readonly seat: number | undefined;
  readonly turns: readonly TurnRecord[];
}

/** One character is one byte, so that positions in the file can be counted in characters. */
const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[\u007f-\uffff]/g, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);

const count = z.int().nonnegative();
const marker = z.union([z.tuple([count, count]), z.tuple([count, count, count, count, count, z.json()])]);

/** Reads what is left of a match from its markers. A cell may die in the middle of a line. */
export function readMarkers(text: string, order: number): Markers {
  let seat: number | undefined;
  const turns: TurnRecord[] = [];
  for (const line of (text.split(markerEnd)[0] ?? '').split('\n')) {
    const parsed = marker.safeParse(jsonOf(line));
    if (!parsed.success || parsed.data[0] !== order) continue;
    const [, onMove, turn, by, fuel, action] = parsed.data;
    seat = onMove;
    if (turn === undefined || by === undefined || action === undefined || fuel === undefined) continue;
    if (turn === turns.length + 1) turns.push({ turn, seat: by, action, fuel });
  }
  return { seat, turns };
}
