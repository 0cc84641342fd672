import type { Redis } from 'ioredis';
import type { Board, HotBoards, HotChange, HotRating, Ranked } from '../leaderboards/hot.js';

/**
 * The hot boards in Redis: a sorted set a board. Scores are negative ratings, because equal scores are then in the order
 * of their names. A change is one script: either all of it is taken in, with its position, or none.
 */
export class RedisBoards implements HotBoards {
  constructor(
    private readonly redis: Redis,
    /** Keys share a slot, so that the script also runs on a cluster. */
    private readonly prefix = '{agon:boards}',
  ) {}

  async position(): Promise<number> {
    return Number((await this.redis.get(`${this.prefix}:position`)) ?? 0);
  }

  async apply(position: number, { put, removed }: HotChange): Promise<boolean> {
    const puts = put.flatMap((row) => [nameOf(row), `${-row.rating}`, row.agentId]);
    const gone = removed.flatMap((row) => [nameOf(row), row.agentId]);
    const args = [this.prefix, `${position}`, `${removed.length}`, ...gone, ...puts];
    return (await this.redis.eval(APPLY, 0, ...args)) === 1;
  }

  async fill(position: number, rows: readonly HotRating[]): Promise<void> {
    const puts = rows.flatMap((row) => [nameOf(row), `${-row.rating}`, row.agentId]);
    await this.redis.eval(`${CLEAR} ${APPLY}`, 0, this.prefix, `${position}`, '0', ...puts);
  }

  async top(board: Board, first: number): Promise<Ranked[]> {
    return this.range(board, 0, first - 1);
  }

  async rankOf(board: Board, agentId: string): Promise<Ranked | undefined> {
    return (await this.around(board, agentId, 0))[0];
  }

  async around(board: Board, agentId: string, each: number): Promise<Ranked[]> {
    const at = await this.redis.zrank(this.key(board), agentId);
    return at === null ? [] : this.range(board, Math.max(0, at - each), at + each);
  }

  private async range(board: Board, from: number, to: number): Promise<Ranked[]> {
    const found = await this.redis.zrange(this.key(board), from, to, 'WITHSCORES');
    return Array.from({ length: found.length / 2 }, (_, i) => ({
      agentId: found[2 * i] as string,
      rating: 0 - Number(found[2 * i + 1]),
      rank: from + i + 1,
    }));
  }

  private key(board: Board): string {
    return `${this.prefix}:${nameOf(board)}`;
  }
}

const nameOf = ({ season, game }: Board) => `${season}:${game}`;

/** Arguments: prefix, position, how many are removed, (board, agent) of each, then (board, score, agent) of each put. */
const APPLY = `
local prefix, position = ARGV[1], tonumber(ARGV[2])
if position <= tonumber(redis.call('GET', prefix .. ':position') or '0') then return 0 end
local at = 4
for _ = 1, tonumber(ARGV[3]) do
  redis.call('ZREM', prefix .. ':' .. ARGV[at], ARGV[at + 1])
  at = at + 2
end
while at <= #ARGV do
  redis.call('ZADD', prefix .. ':' .. ARGV[at], ARGV[at + 1], ARGV[at + 2])
  redis.call('SADD', prefix .. ':boards', ARGV[at])
  at = at + 3
end
redis.call('SET', prefix .. ':position', ARGV[2])
return 1`;

const CLEAR = `
for _, board in ipairs(redis.call('SMEMBERS', ARGV[1] .. ':boards')) do redis.call('DEL', ARGV[1] .. ':' .. board) end
redis.call('DEL', ARGV[1] .. ':boards', ARGV[1] .. ':position')`;
