/**
 * Glicko-2 as Glickman describes it. A rating period is a day of the log's own time, in UTC: all matches of a day are
 * judged by what was known of the players when it began, and a day without a match makes a rating less certain.
 */
const TAU = 0.5;
export const PROVISIONAL_DEVIATION = 110;
const SCALE = 173.7178;
const CONVERGENCE = 1e-6;
const PERIOD_MS = 86_400_000;

export interface Glicko {
  readonly rating: number;
  readonly deviation: number;
  readonly volatility: number;
}

export const UNRATED: Glicko = { rating: 1500, deviation: 350, volatility: 0.06 };

/** A result against an opponent, by what was known of both when the period began. */
interface GlickoResult {
  readonly opponent: Glicko;
  /** 1, 0.5 or 0. */
  readonly score: number;
  /** How much of a game it counts for. */
  readonly weight?: number;
}

/** What the results of a period add up to: how much was learnt, and how much better it went than expected. */
export interface Evidence {
  readonly information: number;
  readonly surprise: number;
}

export const NO_EVIDENCE: Evidence = { information: 0, surprise: 0 };

export const periodOf = (time: string): number => Math.floor(Date.parse(time) / PERIOD_MS);

/** Sums do not depend on how results are cut into batches; their order is that of the log. */
export function withResult(
  evidence: Evidence,
  player: Glicko,
  { opponent, score, weight = 1 }: GlickoResult,
): Evidence {
  const phi = opponent.deviation / SCALE;
  const g = 1 / Math.sqrt(1 + (3 * phi * phi) / Math.PI ** 2);
  const expected = 1 / (1 + Math.exp((-g * (player.rating - opponent.rating)) / SCALE));
  return {
    information: evidence.information + weight * g * g * expected * (1 - expected),
    surprise: evidence.surprise + weight * g * (score - expected),
  };
}

/**
 * A player at the end of a period.
 *
 * @example
 * const results = [{ opponent: { rating: 1400, deviation: 30, volatility: 0.06 }, score: 1 }];
 * afterPeriod(player, results.reduce((sum, result) => withResult(sum, player, result), NO_EVIDENCE));
 */
export function afterPeriod(player: Glicko, { information, surprise }: Evidence, tau = TAU): Glicko {
  if (information === 0) return idle(player, 1);
  const phi = player.deviation / SCALE;
  const v = 1 / information;
  const volatility = newVolatility(player.volatility, phi, v, v * surprise, tau);
  const newPhi = 1 / Math.sqrt(1 / (phi * phi + volatility * volatility) + information);
  return { rating: player.rating + SCALE * newPhi * newPhi * surprise, deviation: SCALE * newPhi, volatility };
}

/** Days without a match: the rating stays, and is known less and less, up to where everybody began. */
export function idle(player: Glicko, periods: number): Glicko {
  const phi = player.deviation / SCALE;
  const deviation = SCALE * Math.sqrt(phi * phi + periods * player.volatility ** 2);
  return { ...player, deviation: Math.max(player.deviation, Math.min(UNRATED.deviation, deviation)) };
}

/** The Illinois variant of regula falsi, steps 5.1 to 5.5 of the paper. */
function newVolatility(sigma: number, phi: number, v: number, delta: number, tau: number): number {
  const a = Math.log(sigma * sigma);
  const d2 = delta * delta;
  const f = (x: number) => {
    const e = Math.exp(x);
    const sum = phi * phi + v + e;
    return (e * (d2 - sum)) / (2 * sum * sum) - (x - a) / (tau * tau);
  };
  let low = a;
  let high = d2 > phi * phi + v ? Math.log(d2 - phi * phi - v) : a - tau;
  if (d2 <= phi * phi + v) while (f(high) < 0) high -= tau;
  let [atLow, atHigh] = [f(low), f(high)];
  while (Math.abs(high - low) > CONVERGENCE) {
    const middle = low + ((low - high) * atLow) / (atHigh - atLow);
    const atMiddle = f(middle);
    if (atMiddle * atHigh <= 0) [low, atLow] = [high, atHigh];
    else atLow /= 2;
    [high, atHigh] = [middle, atMiddle];
  }
  return Math.exp(low / 2);
}

/** A player in the middle of a period: how it stood when the period began, and what has happened in it. */
export interface Running extends Evidence {
  readonly period: number;
  readonly start: Glicko;
}

/** How a player stands when this period begins; a clock that went back does not end a period twice. */
export function rolledTo(running: Running, period: number): Running {
  const passed = period - running.period;
  if (passed <= 0) return running;
  const start = idle(estimate(running), passed - 1);
  return { period, start, ...NO_EVIDENCE };
}

/** The rating as it would be if the period ended now; without a match in it, as it began. */
export const estimate = (running: Running): Glicko =>
  running.information === 0 ? running.start : afterPeriod(running.start, running);
