import type { Redis } from 'ioredis';
import { randomIds } from '../../services/kernel/index.js';
import type { Mark } from '../engine/sink.js';
import {
  type Board,
  type BoardEntry,
  boardsBehind,
  type HotBoards,
  type HotChange,
  type HotRating,
} from '../leaderboards/hot.js';

/** Rows to a command. Redis does nothing else while it carries one out, and arguments go through the caller's stack. */
const CHUNK_ROWS = 5_000;

/** How long what a filler leaves behind that died stays. */
const ASIDE_SECONDS = 3_600;

/**
 * The hot boards in Redis: a sorted set a board. Scores are negative ratings, because equal scores are then in the order
 * of their names. A change is one script: either all of it is taken in, with its mark, or none. What is too much for one
 * is prepared aside, piece by piece, and takes the boards' places in one script.
 */
export class RedisBoards implements HotBoards {
  constructor(
    private readonly redis: Redis,
    /** Keys share a slot, so that the scripts also run on a cluster. */
    private readonly prefix = '{agon:boards}',
  ) {}

  async mark(): Promise<Mark | undefined> {
    const [position, generation] = await this.redis.hmget(`${this.prefix}:mark`, 'position', 'generation');
    return position == null || generation == null ? undefined : { position: Number(position), generation };
  }

  async apply(to: Mark, change: HotChange, from: number): Promise<boolean> {
    const large = change.put.length + change.removed.length > CHUNK_ROWS;
    const prepared = large ? await this.prepared(change, true) : undefined;
    const guard = [to.position, to.generation, from];
    const answer = prepared
      ? await this.redis.eval(GUARD + SWITCH, 1, this.prefix, ...guard, prepared.aside, 'some', prepared.parts)
      : await this.redis.eval(GUARD + EDIT, 1, this.prefix, ...guard, 'live', ...edits(change));
    if (answer === -1) throw boardsBehind(from);
    return answer === 1;
  }

  async fill({ position, generation }: Mark, rows: readonly HotRating[]): Promise<void> {
    const { aside, parts } = await this.prepared({ put: rows, removed: [] }, false);
    const answer = await this.redis.eval(SWITCH, 1, this.prefix, position, generation, 0, aside, 'all', parts);
    if (answer === -1) throw boardsBehind(position);
  }

  async top(board: Board, first: number): Promise<BoardEntry[]> {
    return this.range(board, 0, first - 1);
  }

  async rankOf(board: Board, agentId: string): Promise<BoardEntry | undefined> {
    return (await this.around(board, agentId, 0))[0];
  }

  async around(board: Board, agentId: string, each: number): Promise<BoardEntry[]> {
    const at = await this.redis.zrank(this.key(board), agentId);
    return at === null ? [] : this.range(board, Math.max(0, at - each), at + each);
  }

  private async range(board: Board, from: number, to: number): Promise<BoardEntry[]> {
    const found = await this.redis.zrange(this.key(board), from, to, 'WITHSCORES');
    return Array.from({ length: found.length / 2 }, (_, i) => ({
      agentId: found[2 * i] as string,
      rating: 0 - Number(found[2 * i + 1]),
      rank: from + i + 1,
    }));
  }

  /**
   * The boards as they are after the change, under a prefix that nobody reads: from what is there, or from nothing; and in
   * how many parts. A Redis that was emptied in the middle of it holds fewer.
   */
  private async prepared(change: HotChange, fromThere: boolean): Promise<{ aside: string; parts: number }> {
    const aside = `${this.prefix}:aside:${randomIds()}`;
    const names = new Set(fromThere ? [...change.put, ...change.removed].map(nameOf) : []);
    for (const name of names) await this.redis.eval(COPY, 1, this.prefix, aside, name, ASIDE_SECONDS);
    let edited = 0;
    for (const part of partsOf(change)) {
      await this.redis.eval(EDIT, 1, aside, edited++, '', 0, `${ASIDE_SECONDS}`, ...edits(part));
    }
    return { aside, parts: names.size + edited };
  }

  private key(board: Board): string {
    return `${this.prefix}:${nameOf(board)}`;
  }
}

const nameOf = ({ season, game }: Board) => `${season}:${game}`;

/** What is removed comes first, as it does in one piece. */
function* partsOf({ put, removed }: HotChange): Generator<HotChange> {
  for (let at = 0; at < removed.length; at += CHUNK_ROWS) {
    yield { put: [], removed: removed.slice(at, at + CHUNK_ROWS) };
  }
  for (let at = 0; at < put.length; at += CHUNK_ROWS) yield { put: put.slice(at, at + CHUNK_ROWS), removed: [] };
}

const edits = ({ put, removed }: HotChange): string[] => [
  `${removed.length}`,
  ...removed.flatMap((row) => [nameOf(row), row.agentId]),
  ...put.flatMap((row) => [nameOf(row), `${-row.rating}`, row.agentId]),
];

/**
 * Every script: key 1 is the prefix of the boards; arguments 1 to 3 are position, generation and from where. Each may be
 * carried out twice: the client sends it again after a connection that broke before the answer had come.
 */
const GUARD = `
local at = redis.call('HMGET', KEYS[1] .. ':mark', 'position', 'generation')
if at[2] ~= ARGV[2] then return -1 end
if tonumber(ARGV[1]) <= tonumber(at[1]) then return 0 end
if tonumber(at[1]) < tonumber(ARGV[3]) then return -1 end
`;

/**
 * Then: 'live', or for how many seconds, and the position is the number of the part; how many are removed; (board, agent)
 * of each; (board, score, agent) of each put.
 */
const EDIT = `
local i = 6
for _ = 1, tonumber(ARGV[5]) do
  redis.call('ZREM', KEYS[1] .. ':' .. ARGV[i], ARGV[i + 1])
  i = i + 2
end
local touched = {}
while i <= #ARGV do
  redis.call('ZADD', KEYS[1] .. ':' .. ARGV[i], ARGV[i + 1], ARGV[i + 2])
  touched[ARGV[i]] = true
  i = i + 3
end
for board in pairs(touched) do redis.call('SADD', KEYS[1] .. ':boards', board) end
if ARGV[4] == 'live' then
  redis.call('HSET', KEYS[1] .. ':mark', 'position', ARGV[1], 'generation', ARGV[2])
else
  for board in pairs(touched) do redis.call('EXPIRE', KEYS[1] .. ':' .. board, ARGV[4]) end
  redis.call('EXPIRE', KEYS[1] .. ':boards', ARGV[4])
  redis.call('SADD', KEYS[1] .. ':parts', ARGV[1])
  redis.call('EXPIRE', KEYS[1] .. ':parts', ARGV[4])
end
return 1`;

/** Arguments: where to, the board, for how many seconds. A board that is emptied aside is one of its boards as well. */
const COPY = `
local aside = ARGV[1] .. ':' .. ARGV[2]
redis.call('ZUNIONSTORE', aside, 1, KEYS[1] .. ':' .. ARGV[2])
redis.call('EXPIRE', aside, ARGV[3])
redis.call('SADD', ARGV[1] .. ':boards', ARGV[2])
redis.call('EXPIRE', ARGV[1] .. ':boards', ARGV[3])
redis.call('SADD', ARGV[1] .. ':parts', ARGV[2])
redis.call('EXPIRE', ARGV[1] .. ':parts', ARGV[3])`;

/**
 * Then: the prefix of what was prepared, whether that is all there is, and its parts. What is no longer there as a whole,
 * or has taken the boards' places before, would leave them empty. Renaming costs the same whatever the size.
 */
const SWITCH = `
if redis.call('SCARD', ARGV[4] .. ':parts') ~= tonumber(ARGV[6]) then return -1 end
if ARGV[5] == 'all' then
  for _, board in ipairs(redis.call('SMEMBERS', KEYS[1] .. ':boards')) do redis.call('UNLINK', KEYS[1] .. ':' .. board) end
  redis.call('DEL', KEYS[1] .. ':boards')
end
for _, board in ipairs(redis.call('SMEMBERS', ARGV[4] .. ':boards')) do
  local live = KEYS[1] .. ':' .. board
  redis.call('UNLINK', live)
  if redis.call('EXISTS', ARGV[4] .. ':' .. board) == 1 then
    redis.call('RENAME', ARGV[4] .. ':' .. board, live)
    redis.call('PERSIST', live)
    redis.call('SADD', KEYS[1] .. ':boards', board)
  end
end
redis.call('DEL', ARGV[4] .. ':boards', ARGV[4] .. ':parts')
redis.call('HSET', KEYS[1] .. ':mark', 'position', ARGV[1], 'generation', ARGV[2])
return 1`;
