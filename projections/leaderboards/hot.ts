import { AgonError, isAgonError } from '../../services/kernel/index.js';
import type { CommitReport } from '../engine/projector.js';
import type { Mark, RebuildingSink } from '../engine/sink.js';
import type { View } from '../engine/view.js';
import { type RatingRow, ratings } from './table.js';

export interface Board {
  readonly game: string;
  readonly season: string;
}

export type HotRating = Pick<RatingRow, 'season' | 'game' | 'agentId' | 'rating'>;

export interface BoardEntry {
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
  /** Of which rows, and up to where, changes were taken in; undefined before they were ever filled. */
  mark(): Promise<Mark | undefined>;
  /**
   * Takes in what changed up to this position; false, and nothing moves, if it has been taken in before. Boards that are
   * not at `from` at least have missed something, and boards of another generation show other rows: both refuse with
   * BOARDS.BEHIND, and have to be filled.
   */
  apply(to: Mark, change: HotChange, from: number): Promise<boolean>;
  /** Replaces everything, at one stroke. */
  fill(at: Mark, rows: readonly HotRating[]): Promise<void>;
  top(board: Board, first: number): Promise<BoardEntry[]>;
  rankOf(board: Board, agentId: string): Promise<BoardEntry | undefined>;
  /** The agent with up to so many above it and below it. */
  around(board: Board, agentId: string, each: number): Promise<BoardEntry[]>;
}

export const boardsBehind = (from: number) =>
  new AgonError('BOARDS.BEHIND', `The boards are not at position ${from} of these rows, and have to be filled.`);

interface SortedBoard {
  readonly ratings: Map<string, number>;
  readonly order: { readonly agentId: string; readonly rating: number }[];
}

/** To put a row in its place moves all below it; more rows than this are sorted in together. */
const IN_PLACE_ROWS = 1_000;

/** In the process that serves: a sorted list a board, changed in place. */
export class MemoryBoards implements HotBoards {
  private boards = new Map<string, SortedBoard>();
  private at: Mark | undefined;

  async mark(): Promise<Mark | undefined> {
    return this.at;
  }

  async apply(to: Mark, { put, removed }: HotChange, from: number): Promise<boolean> {
    if (this.at?.generation !== to.generation) throw boardsBehind(from);
    if (to.position <= this.at.position) return false;
    if (this.at.position < from) throw boardsBehind(from);
    if (put.length + removed.length > IN_PLACE_ROWS) this.sort({ put, removed });
    else {
      for (const row of removed) this.take(row);
      for (const row of put) this.put(row);
    }
    this.at = to;
    return true;
  }

  async fill(at: Mark, rows: readonly HotRating[]): Promise<void> {
    this.boards = new Map();
    this.sort({ put: rows, removed: [] });
    this.at = at;
  }

  async top(board: Board, first: number): Promise<BoardEntry[]> {
    return this.slice(board, 0, first);
  }

  async rankOf(board: Board, agentId: string): Promise<BoardEntry | undefined> {
    return (await this.around(board, agentId, 0))[0];
  }

  async around(board: Board, agentId: string, each: number): Promise<BoardEntry[]> {
    const sorted = this.boards.get(nameOf(board));
    const rating = sorted?.ratings.get(agentId);
    if (!sorted || rating === undefined) return [];
    const at = placeOf(sorted.order, { agentId, rating });
    return this.slice(board, Math.max(0, at - each), at + each + 1);
  }

  private slice(board: Board, from: number, to: number): BoardEntry[] {
    const order = this.boards.get(nameOf(board))?.order ?? [];
    return order.slice(from, to).map((entry, i) => ({ ...entry, rank: from + i + 1 }));
  }

  private sort({ put, removed }: HotChange): void {
    for (const row of removed) this.boards.get(nameOf(row))?.ratings.delete(row.agentId);
    for (const row of put) this.opened(row).ratings.set(row.agentId, row.rating);
    for (const name of new Set([...put, ...removed].map(nameOf))) {
      const ratings = this.boards.get(name)?.ratings ?? new Map<string, number>();
      const order = Array.from(ratings, ([agentId, rating]) => ({ agentId, rating })).sort(byRank);
      this.boards.set(name, { ratings, order });
    }
  }

  private put(row: HotRating): void {
    this.take(row);
    const { ratings, order } = this.opened(row);
    const entry = { agentId: row.agentId, rating: row.rating };
    order.splice(placeOf(order, entry), 0, entry);
    ratings.set(row.agentId, row.rating);
  }

  private take(row: Board & { agentId: string }): void {
    const sorted = this.boards.get(nameOf(row));
    const rating = sorted?.ratings.get(row.agentId);
    if (!sorted || rating === undefined) return;
    sorted.order.splice(placeOf(sorted.order, { agentId: row.agentId, rating }), 1);
    sorted.ratings.delete(row.agentId);
  }

  /** For those who put something on it: whoever only asks must not make the boards grow. */
  private opened(board: Board): SortedBoard {
    const name = nameOf(board);
    let sorted = this.boards.get(name);
    if (!sorted) {
      sorted = { ratings: new Map(), order: [] };
      this.boards.set(name, sorted);
    }
    return sorted;
  }
}

type Entry = SortedBoard['order'][number];

const nameOf = ({ season, game }: Board) => `${season}\u0000${game}`;

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

/** Where boards stand that were filled before there was a row. */
const NOTHING: Mark = { position: 0, generation: '' };

/** Keeps the boards in step with the rows: every commit in order, and everything when a build was swapped in. */
export class HotFeed {
  private queue: Promise<unknown> = Promise.resolve();
  /** Where the rows stood when the boards were last compared with them. */
  private compared = NOTHING;

  constructor(
    private readonly boards: HotBoards,
    private readonly view: View,
    private readonly sink: RebuildingSink,
    private readonly onError: (error: unknown) => void = () => {},
    /** The boards have moved: what was made of them before is of no use, also if the rows had moved already. */
    private readonly onMoved: () => void = () => {},
  ) {}

  /** Fills the boards from the rows, unless they stand where the rows stand. */
  async start(): Promise<void> {
    const [rows, boards] = [await this.served(), await this.boards.mark()];
    if (boards?.generation !== rows.generation || boards.position !== rows.position) await this.refill();
  }

  readonly committed = ({ view, from, to, generation, changes, removed }: CommitReport): void => {
    if (view.name !== this.view.name) return;
    const put = (changes.get(ratings) ?? []) as readonly RatingRow[];
    const gone = (removed.get(ratings) ?? []).map(([season, game, agentId]) => {
      return { season: `${season}`, game: `${game}`, agentId: `${agentId}` };
    });
    this.after(() => this.take({ position: to, generation }, { put, removed: gone }, from));
  };

  readonly swapped = (view: View): void => {
    if (view.name === this.view.name) this.after(() => this.refill());
  };

  /** Looks again whether the boards stand where the rows stand: whoever keeps them may have lost them. */
  refresh(): void {
    this.after(() => this.start());
  }

  /**
   * Looks whether the boards show the rows that serve: another process may have swapped a build in, and a change may never
   * have come here, when the answer to its COMMIT was lost for instance. Where rows stand now, boards need not stand yet,
   * since changes may be under way; where rows stood at the last look, they have to by this one.
   */
  compare(): void {
    this.after(async () => {
      const [rows, boards] = [await this.served(), await this.boards.mark()];
      const { compared } = this;
      this.compared = rows;
      const missed = compared.generation === rows.generation && (boards?.position ?? 0) < compared.position;
      if (boards?.generation !== rows.generation || missed) await this.refill();
    });
  }

  /** Resolves when everything that was heard of so far has been taken in. */
  async settled(): Promise<void> {
    await this.queue;
  }

  /** What could not be taken in once, or was by somebody who died before, is found missing by the next change. */
  private async take(to: Mark, change: HotChange, from: number): Promise<void> {
    try {
      if (await this.boards.apply(to, change, from)) this.onMoved();
    } catch (error) {
      if (!isAgonError(error, 'BOARDS.BEHIND')) throw error;
      await this.refill();
    }
  }

  private after(work: () => Promise<unknown>): void {
    this.queue = this.queue.then(work).catch(this.onError);
  }

  /** The position first: commits that come while the rows are read are applied again afterwards, to the same effect. */
  private async refill(): Promise<void> {
    for (;;) {
      const at = await this.served();
      await this.boards.fill(at, await this.sink.rows(ratings));
      this.onMoved();
      // Rows that took the place of those in the meantime are others, whatever their position.
      if ((await this.served()).generation === at.generation) return;
    }
  }

  private async served(): Promise<Mark> {
    const { position, generation } = (await this.sink.serving(this.view)) ?? NOTHING;
    return { position, generation };
  }
}
