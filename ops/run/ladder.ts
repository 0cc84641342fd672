import { gameNamed, gameNames, houseAgentSource, houseAgents, houseStables } from '../../sandbox-runner/index.js';
import { RegisterOwner } from '../../services/accounts/index.js';
import { agentIdOf, PublishVersion, SubmitAgent } from '../../services/agents/index.js';
import { ProposeMatch } from '../../services/arena/index.js';
import { AgonError, derivedId, isAgonError, newMeta, SYSTEM } from '../../services/kernel/index.js';
import { GrantCredits } from '../../services/wallet/index.js';
import type { Arena } from './arena.js';

/** Quick to play and quick to look at. The other games take longer; a ladder has them when it is asked for them. */
export const LADDER_GAMES: readonly string[] = ['tic-tac-toe', 'connect-four'];

const STAKE_CENTS = 100n;
const PLAY_STAKE: Stake = { stakeCents: `${STAKE_CENTS}`, currency: 'PLAY' };
const IN_FLIGHT_MAX = 64;
const STUCK_MS = 120_000;

interface Stake {
  readonly stakeCents: string;
  readonly currency: string;
}

export interface LadderOptions {
  readonly matches: number;
  /** Same seed, same matches. */
  readonly seed: string;
  readonly games?: readonly string[];
  /** Play credits when left out. The house has as many of these as it needs, and of nothing else. */
  readonly stake?: Stake;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

interface HouseSeat {
  readonly agentId: string;
  readonly accountId: string;
  readonly version: number;
  readonly codeDigest: string;
  readonly games: readonly string[];
}

/**
 * Seeds the house agents and lets them play each other. Every command's id comes from the seed, so an interrupted
 * ladder goes on where it stopped, and a finished one repeats nothing.
 */
export async function playLadder(arena: Arena, options: LadderOptions): Promise<void> {
  const { matches, seed, games = LADDER_GAMES, stake = PLAY_STAKE, onProgress = () => {}, signal } = options;
  const missing: number[] = [];
  for (let i = 0; i < matches; i++) if (!(await arena.store.head(`match-${matchId(seed, i)}`))) missing.push(i);
  if (missing.length > 0) {
    const seats = await seedHouse(arena, seed, matches);
    const tables = tablesOf(seats, games);
    const { rakeBps, disputeWindowHours } = arena.config;
    const disputeWindowMs = disputeWindowHours * 3_600_000;
    let done = matches - missing.length;
    for (const i of missing) {
      while (!signal?.aborted && i - done >= IN_FLIGHT_MAX) {
        await beat();
        done = await ended(arena, seed, matches);
        onProgress(done, matches);
      }
      if (signal?.aborted) return;
      const { game, table } = tables[i % tables.length] as (typeof tables)[number];
      const players = table.map(({ games: _games, ...seat }) => ({ ...seat, runtime: 'javascript' as const }));
      const terms = { matchId: matchId(seed, i), game, seed: `${seed}/${i}`, ...stake, rakeBps, disputeWindowMs };
      await arena.execute(new ProposeMatch({ ...terms, seats: players }, meta(arena, seed, 'match', i)));
    }
  }
  let movedMs = performance.now();
  for (let before = -1; ; ) {
    const done = await ended(arena, seed, matches);
    onProgress(done, matches);
    if (done >= matches || signal?.aborted) break;
    if (done > before) movedMs = performance.now();
    before = done;
    if (performance.now() - movedMs > STUCK_MS) {
      const parts = (await arena.status())
        .filter((part) => !part.ready)
        .map(({ part, detail }) => `${part}: ${detail}`);
      const why = parts.join('; ') || 'every part says that it is ready';
      throw new AgonError('LADDER.STUCK', `${matches - done} matches have not ended, and nothing moves: ${why}.`);
    }
    await beat();
  }
  if (!signal?.aborted) await arena.settled();
}

/** How the ladder's matches ended. */
export async function ladderResult(
  arena: Arena,
  seed: string,
  matches: number,
): Promise<{ settled: number; voided: number }> {
  const rows: { status: string; count: number }[] = await arena.database.query(
    'SELECT status, count(*)::int AS count FROM matches WHERE match_id = ANY($1) GROUP BY 1',
    [matchIds(seed, matches)],
  );
  const of = (status: string) => rows.find((row) => row.status === status)?.count ?? 0;
  return { settled: of('settled'), voided: of('voided') };
}

const matchId = (seed: string, i: number) => derivedId('ladder', seed, i);
const matchIds = (seed: string, matches: number) => Array.from({ length: matches }, (_, i) => matchId(seed, i));
const beat = () => new Promise((resolve) => setTimeout(resolve, 20));
const meta = (arena: Arena, ...name: (string | number)[]) =>
  newMeta(SYSTEM, { id: derivedId('ladder', ...name), clock: arena.clock });

async function ended(arena: Arena, seed: string, matches: number): Promise<number> {
  const { settled, voided } = await ladderResult(arena, seed, matches);
  return settled + voided;
}

async function seedHouse(arena: Arena, seed: string, matches: number): Promise<HouseSeat[]> {
  const seats: HouseSeat[] = [];
  const grantCents = (BigInt(Math.max(matches, 1000)) * STAKE_CENTS).toString();
  for (const [accountId, stable] of Object.entries(houseStables)) {
    const owner = { accountId, displayName: stable.displayName };
    await arena.execute(new RegisterOwner(owner, meta(arena, 'owner', accountId))).catch((error: unknown) => {
      if (!isAgonError(error, 'ACCOUNTS.TAKEN')) throw error;
    });
    const grant = { accountId, amountCents: grantCents, currency: 'PLAY', reason: 'house stake' };
    await arena.execute(new GrantCredits(grant, meta(arena, 'grant', seed, accountId, grantCents)));
    for (const name of stable.agents) seats.push(await seedAgent(arena, accountId, name));
  }
  return seats;
}

async function seedAgent(arena: Arena, ownerId: string, name: string): Promise<HouseSeat> {
  const house = houseAgents.find((agent) => agent.name === name);
  if (!house) throw new Error(`There is no house agent ${name}.`);
  const content = Buffer.from(await houseAgentSource(house.name));
  const codeDigest = await arena.artifacts.put(content);
  const code = { codeDigest, codeBytes: content.length, runtime: 'javascript' as const };
  const games = house.games.filter((game) => gameNames.includes(game));
  const agentId = agentIdOf(ownerId, name);
  let version = 1;
  const submit = new SubmitAgent({ ownerId, name, games, ...code }, meta(arena, 'agent', agentId, codeDigest));
  try {
    await arena.execute(submit);
  } catch (error) {
    if (!isAgonError(error, 'AGENTS.EXISTS')) throw error;
    await arena.execute(new PublishVersion({ ownerId, name, ...code }, meta(arena, 'version', agentId, codeDigest)));
    version = 1 + ((await arena.store.head(`agent-${agentId}`))?.revision ?? 0);
  }
  return { agentId, accountId: ownerId, version, codeDigest, games };
}

/**
 * Every ordered pair in every game: each meets each from both seats, and neighbours in the list are of different games.
 * At a game for more than two, everybody else who plays it sits down with the pair.
 */
function tablesOf(
  seats: readonly HouseSeat[],
  games: readonly string[],
): { game: string; table: readonly HouseSeat[] }[] {
  const pairs = seats.flatMap((a) => seats.filter((b) => b !== a).map((b) => [a, b] as const));
  return pairs.flatMap((pair) =>
    games
      .filter((game) => pair.every((seat) => seat.games.includes(game)))
      .map((game) => {
        const others = seats.filter((seat) => seat.games.includes(game) && !pair.includes(seat));
        return { game, table: [...pair, ...others].slice(0, gameNamed(game).seats.max) };
      }),
  );
}
