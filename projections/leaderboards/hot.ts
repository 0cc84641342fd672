import type { Committed } from '../engine/projector.js';
import type { RebuildingSink } from '../engine/sink.js';
import type { View } from '../engine/view.js';
import { type RatingRow, ratings } from './table.js';

export interface Board {
  readonly game: string;
  readonly season: string;
}

export type HotRating = Pick<RatingRow, 'season' | 'game' | 'agentId' | 'rating'>;

export interface Ranked {
  readonly agentId: string;
  readonly rating: number;
  /** From 1; equal ratings in the order of their names. */
  readonly rank: number;
}

export interface HotChange {
  readonly put: readonly HotRating[];
  readonly removed: readonly Omit<HotRating, 'rating'>[];
}

/** Boards that are asked for all the time: the first, an agent's rank, and who is around it. */
export interface HotBoards {
  /** The position of the last change that was taken in. */
  position(): Promise<number>;
  /** Takes in what changed up to this position; false, and nothing moves, if it has been taken in before. */
  apply(position: number, change: HotChange): Promise<boolean>;
  /** Replaces everything. */
  fill(position: number, rows: readonly HotRating[]): Promise<void>;
  top(board: Board, first: number): Promise<Ranked[]>;
  rankOf(board: Board, agentId: string): Promise<Ranked | undefined>;
  /** The agent with up to so many above it and below it. */
  around(board: Board, agentId: string, each: number): Promise<Ranked[]>;
}

interface Sorted {
  readonly ratings: Map<string, number>;
  readonly order: { readonly agentId: string; readonly rating: number }[];
}

/** In the process that serves: a sorted list a board, changed in place. */
export class MemoryBoards implements HotBoards {
  private boards = new Map<string, Sorted>();
  private at = 0;

  async position(): Promise<number> {
    return this.at;
  }

  async apply(position: number, { put, removed }: HotChange): Promise<boolean> {
    if (position <= this.at) return false;
    for (const row of removed) this.take(row);
    for (const row of put) this.put(row);
    this.at = position;
    return true;
  }

  async fill(position: number, rows: readonly HotRating[]): Promise<void> {
    this.boards = new Map();
    for (const row of rows) {
      const { ratings, order } = this.sorted(row);
      ratings.set(row.agentId, row.rating);
      order.push({ agentId: row.agentId, rating: row.rating });
    }
    for (const { order } of this.boards.values()) order.sort(byRank);
    this.at = position;
  }

  async top(board: Board, first: number): Promise<Ranked[]> {
    return this.slice(board, 0, first);
  }

  async rankOf(board: Board, agentId: string): Promise<Ranked | undefined> {
    return (await this.around(board, agentId, 0))[0];
  }

  async around(board: Board, agentId: string, each: number): Promise<Ranked[]> {
    const { ratings, order } = this.sorted(board);
    const rating = ratings.get(agentId);
    if (rating === undefined) return [];
    const at = placeOf(order, { agentId, rating });
    return this.slice(board, Math.max(0, at - each), at + each + 1);
  }

  private slice(board: Board, from: number, to: number): Ranked[] {
    const { order } = this.sorted(board);
    return order.slice(from, to).map((entry, i) => ({ ...entry, rank: from + i + 1 }));
  }

  private put(row: HotRating): void {
    this.take(row);
    const { ratings, order } = this.sorted(row);
    const entry = { agentId: row.agentId, rating: row.rating };
    order.splice(placeOf(order, entry), 0, entry);
    ratings.set(row.agentId, row.rating);
  }

  private take(row: Board & { agentId: string }): void {
    const { ratings, order } = this.sorted(row);
    const rating = ratings.get(row.agentId);
    if (rating === undefined) return;
    order.splice(placeOf(order, { agentId: row.agentId, rating }), 1);
    ratings.delete(row.agentId);
  }

  private sorted({ season, game }: Board): Sorted {
    const name = `${season}\u0000${game}`;
    let sorted = this.boards.get(name);
    if (!sorted) {
      sorted = { ratings: new Map(), order: [] };
      this.boards.set(name, sorted);
    }
    return sorted;
  }
}

type Entry = Sorted['order'][number];

const byRank = (a: Entry, b: Entry) =>
  b.rating - a.rating || (a.agentId < b.agentId ? -1 : a.agentId > b.agentId ? 1 : 0);

/** Where the entry stands, or would stand. */
function placeOf(order: readonly Entry[], entry: Entry): number {
  let [low, high] = [0, order.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byRank(order[middle] as Entry, entry) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Keeps the boards in step with the rows: every commit in order, and everything when a build was swapped in. */
export class HotFeed {
  private queue: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly boards: HotBoards,
    private readonly view: View,
    private readonly sink: RebuildingSink,
    private readonly onError: (error: unknown) => void = () => {},
  ) {}

  /** Fills the boards from the rows, unless they stand where the rows stand. */
  async start(): Promise<void> {
    const position = (await this.sink.serving(this.view))?.position ?? 0;
    if (position === 0 || (await this.boards.position()) !== position) await this.refill();
  }

  readonly committed = ({ view, to, changes, removed }: Committed): void => {
    if (view.name !== this.view.name) return;
    const put = (changes.get(ratings) ?? []) as readonly RatingRow[];
    const gone = (removed.get(ratings) ?? []).map(([season, game, agentId]) => {
      return { season: `${season}`, game: `${game}`, agentId: `${agentId}` };
    });
    this.after(() => this.boards.apply(to, { put, removed: gone }));
  };

  readonly swapped = (view: View): void => {
    if (view.name === this.view.name) this.after(() => this.refill());
  };

  /** Resolves when everything that was heard of so far has been taken in. */
  async settled(): Promise<void> {
    await this.queue;
  }

  private after(work: () => Promise<unknown>): void {
    this.queue = this.queue.then(work).catch(this.onError);
  }

  /** The position first: commits that come while the rows are read are applied again afterwards, to the same effect. */
  private async refill(): Promise<void> {
    const position = (await this.sink.serving(this.view))?.position ?? 0;
    await this.boards.fill(position, await this.sink.rows(ratings));
  }
}
