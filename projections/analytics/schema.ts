/** A chart's own table: filled from every insert into `events`, row by row, each row with the position it came from. */
interface ChartTable {
  readonly name: string;
  readonly columns: string;
  /** Identifies a row: what is sent again replaces itself. Begins with the position. */
  readonly key: string;
  /** Reads `{events}`, one row at a time: nothing here may depend on how events are cut into batches. */
  readonly select: string;
}

const place = `position UInt64 CODEC(Delta, ZSTD), time DateTime64(3, 'UTC') CODEC(Delta, ZSTD)`;
const money = 'Decimal(18, 0)';

/** More than everybody else, as much as the best, or less: with two to eight seats, half of the score says nothing. */
const result = (score: string) =>
  `multiIf(${score} < arrayMax(seat_scores), 'lost', countEqual(seat_scores, ${score}) = 1, 'won', 'drawn')`;

/** Every event. Typed columns are what charts need; `data` is all of it, as JSON text. */
const eventColumns = `
  ${place},
  id UUID, type LowCardinality(String), version UInt16, category LowCardinality(String), stream String, revision UInt64,
  actor_id LowCardinality(String), actor_role LowCardinality(String), command_id String, correlation_id String,
  match_id String, agent_id String, account_id String, game LowCardinality(String), currency LowCardinality(String),
  reason String, runtime LowCardinality(String), runner_id LowCardinality(String), driver LowCardinality(String),
  amount_cents ${money}, stake_cents ${money}, pot_cents ${money}, rake_cents ${money},
  attempt UInt32, turn UInt32, seat UInt16, fuel UInt64, wall_ms Float64, code_bytes UInt64, winner Int32 DEFAULT -1,
  seat_agents Array(String), seat_accounts Array(String), seat_scores Array(Float64), seat_payouts Array(${money}),
  usage_fuel Array(UInt64), usage_memory_bytes Array(UInt64), usage_cpu_ms Array(Float64), usage_wall_ms Array(Float64),
  data String CODEC(ZSTD)`;

const chartTables: readonly ChartTable[] = [
  {
    name: 'matches_ended',
    columns: `${place}, match_id String, game LowCardinality(String), outcome LowCardinality(String), reason String`,
    key: 'position',
    select: `SELECT position, time, match_id, game, if(type = 'MatchSettled', 'settled', 'voided') AS outcome, reason
      FROM {events} WHERE type IN ('MatchSettled', 'MatchVoided')`,
  },
  {
    name: 'agent_results',
    columns: `${place}, seat UInt16, match_id String, game LowCardinality(String), agent_id String, score Float64,
      result LowCardinality(String), currency LowCardinality(String), stake_cents ${money}, payout_cents ${money}`,
    key: 'position, seat',
    select: `SELECT position, time, toUInt16(i - 1) AS seat, match_id, game, agent_id, score, ${result('score')} AS result,
        currency, stake_cents, payout_cents FROM {events}
      ARRAY JOIN arrayEnumerate(seat_agents) AS i, seat_agents AS agent_id, seat_scores AS score,
        seat_payouts AS payout_cents
      WHERE type = 'MatchSettled'`,
  },
  {
    name: 'turns',
    columns: `${place}, match_id String, turn UInt32, seat UInt16, fuel UInt64, wall_ms Float64`,
    key: 'position',
    select: `SELECT position, time, match_id, turn, seat, fuel, wall_ms FROM {events} WHERE type = 'TurnPlayed'`,
  },
  {
    name: 'match_steps',
    columns: `${place}, match_id String, game LowCardinality(String), step LowCardinality(String)`,
    key: 'position',
    select: `SELECT position, time, match_id, game, type AS step FROM {events}
      WHERE type IN ('MatchProposed', 'MatchReady', 'MatchClaimed', 'MatchPlayed', 'MatchSettled', 'MatchVoided')`,
  },
  {
    name: 'resource_use',
    columns: `${place}, seat UInt16, match_id String, driver LowCardinality(String), fuel UInt64, memory_bytes UInt64,
      cpu_ms Float64, wall_ms Float64`,
    key: 'position, seat',
    select: `SELECT position, time, toUInt16(i - 1) AS seat, match_id, driver, fuel, memory_bytes, cpu_ms, wall_ms
      FROM (SELECT position, time, match_id, driver, type, usage_fuel, usage_memory_bytes, usage_cpu_ms, usage_wall_ms
        FROM {events})
      ARRAY JOIN arrayEnumerate(usage_fuel) AS i, usage_fuel AS fuel, usage_memory_bytes AS memory_bytes,
        usage_cpu_ms AS cpu_ms, usage_wall_ms AS wall_ms
      WHERE type = 'MatchPlayed'`,
  },
  {
    name: 'revenue',
    columns: `${place}, match_id String, game LowCardinality(String), currency LowCardinality(String), pot_cents ${money},
      rake_cents ${money}, paid_cents Decimal(38, 0)`,
    key: 'position',
    select: `SELECT position, time, match_id, game, currency, pot_cents, rake_cents, arraySum(seat_payouts) AS paid_cents
      FROM {events} WHERE type = 'MatchSettled'`,
  },
  {
    name: 'prompt_proofs',
    columns: `${place}, agent_id String, stream String`,
    key: 'position',
    select: `SELECT position, time, agent_id, stream FROM {events} WHERE type = 'PromptProven'`,
  },
  {
    name: 'submission_steps',
    columns: `${place}, seat UInt16, step LowCardinality(String), agent_id String`,
    key: 'position, seat, step',
    select: `SELECT position, time, toUInt16(i - 1) AS seat, step, agent_id
      FROM (SELECT position, time, type, if(type = 'AgentSubmitted', [agent_id], seat_agents) AS agents,
          multiIf(type = 'AgentSubmitted', ['submitted'], type = 'MatchProposed', ['matched'], ['played']) AS reached,
          seat_scores FROM {events} WHERE type IN ('AgentSubmitted', 'MatchProposed', 'MatchSettled'))
      ARRAY JOIN arrayEnumerate(agents) AS i, agents AS agent_id
      ARRAY JOIN if(type = 'MatchSettled' AND ${result('seat_scores[i]')} = 'won', arrayPushBack(reached, 'won'), reached) AS step`,
  },
];

/**
 * What a reversal takes back, as a row of its own: it counts on its own day, as it does in the ledger, with its amounts
 * the other way round. `sign` says by how much a row counts where rows are counted.
 */
const reversals: readonly Pick<ChartTable, 'name' | 'select'>[] = [
  {
    name: 'agent_results',
    select: `SELECT position, time, toUInt16(i - 1) AS seat, match_id, game, agent_id, score, ${result('score')} AS result,
        currency, -stake AS stake_cents, -payout AS payout_cents, toInt8(-1) AS sign
      FROM (SELECT position, time, type, match_id, game, currency, stake_cents AS stake, seat_agents, seat_scores,
        seat_payouts FROM {events})
      ARRAY JOIN arrayEnumerate(seat_agents) AS i, seat_agents AS agent_id, seat_scores AS score, seat_payouts AS payout
      WHERE type = 'MatchReversed'`,
  },
  {
    name: 'revenue',
    select: `SELECT position, time, match_id, game, currency, -pot AS pot_cents, -rake AS rake_cents,
        -arraySum(seat_payouts) AS paid_cents, toInt8(-1) AS sign
      FROM (SELECT position, time, type, match_id, game, currency, pot_cents AS pot, rake_cents AS rake, seat_payouts
        FROM {events})
      WHERE type = 'MatchReversed'`,
  },
  {
    name: 'submission_steps',
    select: `SELECT position, time, toUInt16(i - 1) AS seat, step, agent_id, toInt8(-1) AS sign
      FROM (SELECT position, time, seat_agents, seat_scores FROM {events} WHERE type = 'MatchReversed')
      ARRAY JOIN arrayEnumerate(seat_agents) AS i, seat_agents AS agent_id
      ARRAY JOIN if(${result('seat_scores[i]')} = 'won', ['played', 'won'], ['played']) AS step`,
  },
];

const reversedEnd: Pick<ChartTable, 'name' | 'select'> = {
  name: 'matches_ended',
  select: `SELECT position, time, match_id, game, 'reversed' AS outcome, reason
    FROM {events} WHERE type = 'MatchReversed'`,
};

const base = (database: string, name: string, columns: string, key: string) =>
  `CREATE TABLE IF NOT EXISTS ${database}.${name} (${columns})
   ENGINE = ReplacingMergeTree ORDER BY (${key}) SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`;

/** A chart's table, the view that fills it, and what was there before it: all of it can be said twice. */
const chart = (database: string, table: ChartTable): string[] => [
  base(database, table.name, table.columns, table.key),
  ...filled(database, table, 'view'),
];

const filled = (database: string, { name, select }: Pick<ChartTable, 'name' | 'select'>, view: string): string[] => {
  const rows = select.replaceAll('{events}', `${database}.events`);
  return [
    `CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.${name}_${view} TO ${database}.${name} AS ${rows}`,
    `INSERT INTO ${database}.${name} ${rows}`,
  ];
};

interface Migration {
  readonly version: number;
  statements(database: string): readonly string[];
}

/**
 * What has to be said to ClickHouse, once each, in this order; never edited once released. Every statement can be
 * repeated, because a crash between a statement and its record repeats it.
 */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    statements: (database) => [
      base(database, 'events', eventColumns, 'position'),
      `CREATE TABLE IF NOT EXISTS ${database}.progress (name String, position UInt64)
       ENGINE = ReplacingMergeTree(position) ORDER BY name SETTINGS fsync_after_insert = 1`,
      ...chartTables.flatMap((table) => chart(database, table)),
    ],
  },
  {
    version: 2,
    statements: (database) => [
      ...reversals.map(({ name }) => `ALTER TABLE ${database}.${name} ADD COLUMN IF NOT EXISTS sign Int8 DEFAULT 1`),
      ...[...reversals, reversedEnd].flatMap((table) => filled(database, table, 'reversed_view')),
    ],
  },
];

/** Every table whose rows come from the log. */
export const dataTables: readonly string[] = ['events', ...chartTables.map(({ name }) => name)];
