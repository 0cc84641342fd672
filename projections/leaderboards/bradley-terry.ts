/** How often one beat the other; a draw is half a win for each. */
export interface Pairing {
  readonly a: string;
  readonly b: string;
  readonly winsA: number;
  readonly winsB: number;
  readonly draws: number;
}

export interface Strength {
  readonly agentId: string;
  /** On Elo's scale, with the mean of all at 1500. */
  readonly rating: number;
  /** With 95 percent confidence every agent of the list is within its interval. */
  readonly low: number;
  readonly high: number;
}

interface BootstrapOptions {
  readonly rounds?: number;
  /** Numbers in [0, 1), from a seed. */
  readonly random: () => number;
}

const ROUNDS = 100;
const CONFIDENCE = 0.95;
const ITERATIONS_MAX = 2_000;
const CONVERGENCE = 1e-9;
/**
 * A draw's hundredth against an average opponent, for everybody: without it, one who never lost would be infinitely
 * strong, and groups that never met could not be compared.
 */
const PRIOR = 0.01;
const ELO_PER_NAT = 400 / Math.LN10;

/** Strengths by maximum likelihood (Hunter's minorisation), as logarithms with mean 0, in the order of the agents. */
export function bradleyTerry(agents: readonly string[], pairings: readonly Pairing[]): number[] {
  const index = new Map(agents.map((agent, i) => [agent, i]));
  const games = pairings.map(({ a, b, winsA, winsB, draws }) => ({
    a: index.get(a) as number,
    b: index.get(b) as number,
    won: winsA + draws / 2,
    lost: winsB + draws / 2,
  }));
  const won = agents.map(() => PRIOR);
  for (const game of games) {
    won[game.a] = (won[game.a] ?? 0) + game.won;
    won[game.b] = (won[game.b] ?? 0) + game.lost;
  }
  let strengths = agents.map(() => 1);
  for (let i = 0; i < ITERATIONS_MAX; i++) {
    const weights = strengths.map((strength) => (2 * PRIOR) / (strength + 1));
    for (const { a, b, won: w, lost } of games) {
      const share = (w + lost) / ((strengths[a] ?? 1) + (strengths[b] ?? 1));
      weights[a] = (weights[a] ?? 0) + share;
      weights[b] = (weights[b] ?? 0) + share;
    }
    const next = centred(won.map((wins, at) => wins / (weights[at] ?? 1)));
    const moved = largest(next.map((value, at) => Math.abs(Math.log(value / (strengths[at] ?? 1)))));
    strengths = next;
    if (moved < CONVERGENCE) break;
  }
  return strengths.map(Math.log);
}

/** A call with as many arguments as there are agents would be too much for the stack. */
const largest = (values: readonly number[]) => values.reduce((most, value) => Math.max(most, value), 0);

const centred = (strengths: readonly number[]) => {
  const mean = strengths.reduce((sum, value) => sum + Math.log(value), 0) / Math.max(1, strengths.length);
  return strengths.map((value) => value / Math.exp(mean));
};

/**
 * Strengths with intervals that all hold at once: the matches are drawn again with replacement, and the strengths computed
 * from each draw. An interval reaches as many standard deviations to either side as the agent that was furthest off in a
 * draw, by that measure, stayed within in 95 percent of them.
 */
export function strengthsOf(pairings: readonly Pairing[], options: BootstrapOptions): Strength[] {
  const agents = [...new Set(pairings.flatMap(({ a, b }) => [a, b]))].sort();
  const best = bradleyTerry(agents, pairings);
  const rounds = Array.from({ length: options.rounds ?? ROUNDS }, () =>
    bradleyTerry(agents, resampled(pairings, options.random)),
  );
  const deviations = best.map((_strength, i) => deviation(rounds.map((round) => round[i] ?? 0)));
  const furthest = rounds.map((round) => {
    const off = round.map((strength, i) => Math.abs(strength - (best[i] ?? 0)) / (deviations[i] || 1));
    return largest(off);
  });
  const reach = quantile(
    furthest.sort((x, y) => x - y),
    CONFIDENCE,
  );
  return agents
    .map((agentId, i) => {
      const elo = (value: number) => 1500 + ELO_PER_NAT * value;
      const [strength, margin] = [best[i] ?? 0, reach * (deviations[i] ?? 0)];
      return { agentId, rating: elo(strength), low: elo(strength - margin), high: elo(strength + margin) };
    })
    .sort((x, y) => y.rating - x.rating || (x.agentId < y.agentId ? -1 : 1));
}

function deviation(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, values.length - 1));
}

/** As many matches as there were, each one of them, drawn with replacement. */
function resampled(pairings: readonly Pairing[], random: () => number): Pairing[] {
  const cells = pairings.flatMap((pairing, i) =>
    [pairing.winsA, pairing.winsB, pairing.draws].map((count, outcome) => ({ i, outcome, count })),
  );
  const ends: number[] = [];
  let total = 0;
  for (const { count } of cells) {
    total += count;
    ends.push(total);
  }
  const drawn = cells.map(() => 0);
  for (let n = 0; n < total; n++) {
    const at = firstAbove(ends, random() * total);
    drawn[at] = (drawn[at] ?? 0) + 1;
  }
  return pairings.map(({ a, b }, i) => {
    const [winsA = 0, winsB = 0, draws = 0] = drawn.slice(3 * i, 3 * i + 3);
    return { a, b, winsA, winsB, draws };
  });
}

function firstAbove(ends: readonly number[], value: number): number {
  let [low, high] = [0, ends.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 0) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * By the rank among n + 1 gaps. Counting between the first and the last of a hundred draws instead leaves the ends out,
 * and makes intervals too narrow.
 */
function quantile(sorted: readonly number[], share: number): number {
  const at = Math.max(0, Math.min(sorted.length - 1, share * (sorted.length + 1) - 1));
  const [low = 0, high = low] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
