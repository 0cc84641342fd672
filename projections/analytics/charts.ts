/** One of the dashboard's charts: a statement over the tables of `schema.ts`, with `{from}` and `{to}` for the days. */
interface Chart {
  readonly title: string;
  readonly sql: string;
}

const days = "time >= {from:DateTime64(3, 'UTC')} AND time < {to:DateTime64(3, 'UTC')}";
const levels = (name: string) => [50, 90, 99].map((p) => `quantileExact(0.${p})(${name}) AS ${name}P${p}`).join(', ');

/**
 * The eight charts. What a reversal takes back, it takes back on its own day, as in the ledger. FINAL reads each position once, also while duplicates of it are not merged yet; tables are sorted by
 * position, so that it costs next to nothing. Columns are named as the gateway names its fields.
 */
export const charts = {
  matchesPerDay: {
    title: 'Matches a day',
    sql: `SELECT toString(toDate(time)) AS day, game, countIf(outcome = 'settled') AS settled,
        countIf(outcome = 'voided') AS voided, countIf(outcome = 'reversed') AS reversed
      FROM matches_ended FINAL WHERE ${days} GROUP BY day, game ORDER BY day, game`,
  },
  agentPerformance: {
    title: 'Performance of agents',
    sql: `SELECT agent_id AS agentId, game, sum(sign) AS played, sumIf(sign, result = 'won') AS won,
        sumIf(sign, result = 'drawn') AS drawn, sumIf(sign, result = 'lost') AS lost,
        if(played = 0, 0, sum(sign * score) / played) AS meanScore,
        sum(toDecimal128(payout_cents, 0) - stake_cents) AS netCents
      FROM agent_results FINAL WHERE ${days} GROUP BY agentId, game HAVING played != 0 OR netCents != 0
      ORDER BY played DESC, agentId, game LIMIT 1000`,
  },
  turnPercentiles: {
    title: 'Fuel and time of a turn',
    sql: `SELECT toString(toDate(time)) AS day, count() AS turns, quantileExact(0.5)(fuel) AS fuelP50,
        quantileExact(0.9)(fuel) AS fuelP90, quantileExact(0.99)(fuel) AS fuelP99,
        quantileExact(0.5)(wall_ms) AS wallMsP50, quantileExact(0.99)(wall_ms) AS wallMsP99
      FROM turns FINAL WHERE ${days} GROUP BY day ORDER BY day`,
  },
  matchLatency: {
    title: 'From proposal to settlement',
    sql: `SELECT game, count() AS matches, ${levels('waitMs')}, ${levels('playMs')}
      FROM (SELECT match_id, max(game) AS game, minIf(time, step = 'MatchReady') AS ready,
          maxIf(time, step = 'MatchClaimed') AS claimed, maxIf(time, step = 'MatchPlayed') AS played,
          countIf(step = 'MatchReady') > 0 AND countIf(step = 'MatchPlayed') > 0 AS known,
          greatest(0, toUnixTimestamp64Milli(claimed) - toUnixTimestamp64Milli(ready)) AS waitMs,
          greatest(0, toUnixTimestamp64Milli(played) - toUnixTimestamp64Milli(claimed)) AS playMs
        FROM match_steps FINAL WHERE ${days} GROUP BY match_id)
      WHERE known GROUP BY game ORDER BY game`,
  },
  resourceUse: {
    title: 'Resources used',
    sql: `SELECT toString(toDate(time)) AS day, driver, count() AS seats, sum(fuel) AS fuel, sum(cpu_ms) AS cpuMs,
        sum(wall_ms) AS wallMs, max(memory_bytes) AS peakMemoryBytes
      FROM resource_use FINAL WHERE ${days} GROUP BY day, driver ORDER BY day, driver`,
  },
  revenue: {
    title: 'Revenue and rake',
    sql: `SELECT toString(toDate(time)) AS day, currency, sum(sign) AS matches, sum(pot_cents) AS potCents,
        sum(rake_cents) AS rakeCents, sum(paid_cents) AS paidCents
      FROM revenue FINAL WHERE ${days} GROUP BY day, currency ORDER BY day, currency`,
  },
  promptProofs: {
    title: 'Prompts proven',
    sql: `SELECT toString(toDate(time)) AS day, count() AS proofs, uniqExact(agent_id) AS agents
      FROM prompt_proofs FINAL WHERE ${days} GROUP BY day ORDER BY day`,
  },
  submissionFunnel: {
    title: 'From submission to the first win',
    sql: `SELECT count() AS submitted, countIf(matched) AS matched, countIf(played) AS played, countIf(won) AS won
      FROM (SELECT agent_id, countIf(step = 'matched') > 0 AS matched,
          sumIf(sign, step = 'played') > 0 AS played, sumIf(sign, step = 'won') > 0 AS won
        FROM submission_steps FINAL WHERE ${days} GROUP BY agent_id HAVING countIf(step = 'submitted') > 0)`,
  },
} as const satisfies Record<string, Chart>;

export type ChartName = keyof typeof charts;
