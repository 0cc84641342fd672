import { leaderboard, type RankedBy, type Standing, standingsOf } from '../projections/leaderboards/query.js';
import { SEASON } from '../projections/leaderboards/table.js';
import { AgonError } from '../services/kernel/index.js';
import type { GatewayPorts } from './ports.js';

const KEPT_MAX = 4_096;

/** How often a view's rows have changed; undefined where nobody tells. */
export interface Changes {
  of(view: string): number | undefined;
}

/**
 * Answers that were made once and hold until the rows that they were made of change. What is asked for many times while
 * nothing happens costs one question to the database; what changes all the time costs what it always did.
 */
export class Answers {
  private readonly kept = new Map<string, { readonly at: number; readonly made: Promise<unknown>; value?: unknown }>();

  constructor(private readonly changes: Changes) {}

  /** What is known already, without waiting for anything. */
  known<T>(view: string, key: string): T | undefined {
    const found = this.kept.get(key);
    return found !== undefined && found.at === this.changes.of(view) ? (found.value as T | undefined) : undefined;
  }

  of<T>(view: string, key: string, make: () => Promise<T>): Promise<T> {
    // Looked at before the rows are read: a change in between makes the answer one that does not hold, never a stale one.
    const at = this.changes.of(view);
    if (at === undefined) return make();
    const found = this.kept.get(key);
    if (found?.at === at) return found.made as Promise<T>;
    const made = make();
    const entry: { at: number; made: Promise<T>; value?: T } = { at, made };
    this.kept.delete(key);
    this.kept.set(key, entry);
    if (this.kept.size > KEPT_MAX) this.kept.delete(this.kept.keys().next().value as string);
    made.then(
      (value) => {
        entry.value = value;
      },
      // What failed is not remembered.
      () => this.kept.get(key) === entry && this.kept.delete(key),
    );
    return made;
  }
}

const known = new WeakMap<object, Answers>();

/** One memory for all endpoints of a gateway. */
export function answersOf(ports: Pick<GatewayPorts, 'changes'>): Answers {
  const answers = known.get(ports) ?? new Answers(ports.changes);
  known.set(ports, answers);
  return answers;
}

export function seasonIn(text: string): string {
  if (SEASON.test(text)) return text;
  throw new AgonError('QUERY.BAD_SEASON', 'season is a quarter as 2026-Q1, or all.');
}

interface BoardWanted {
  readonly game: string;
  readonly season: string;
  readonly by: RankedBy;
  readonly first: number;
}

/** The first of a board: made once, and kept until a match changes it or a day passes. */
export function topOf(ports: GatewayPorts, { first, ...board }: BoardWanted): Promise<readonly Standing[]> {
  const { database, boards, clock } = ports;
  const now = clock();
  const key = `board ${board.game} ${board.season} ${board.by} ${first} ${now.slice(0, 10)}`;
  return answersOf(ports).of('leaderboards', key, async () => {
    if (board.by === 'glicko') return leaderboard(database, board, first, now);
    return standingsOf(database, board, await boards.top(board, first), now);
  });
}
