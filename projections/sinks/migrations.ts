import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Text is compared by code units everywhere, so that an order never depends on the machine's language. */
export class Foundation1760000000000 implements MigrationInterface {
  readonly name = 'Foundation1760000000000';

  up = (runner: QueryRunner) => carryOut(runner, FOUNDATION);

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP TABLE checkpoints, accounts, agents, agent_versions, matches, turns, ratings, rating_history, postings, balances',
    );
    await runner.query('DROP FUNCTION postings_sum_to_zero');
  }
}

/**
 * Seasons, Glicko-2, head to head, and what the engine needs to put events aside. Columns get defaults, so that the rows
 * that are there serve on until the view has been built anew beside them.
 */
export class Ratings1763200000000 implements MigrationInterface {
  readonly name = 'Ratings1763200000000';

  up = (runner: QueryRunner) => carryOut(runner, RATINGS);

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE dead_letters, head_to_head, rated_matches');
    await runner.query('TRUNCATE ratings, rating_history');
    await runner.query(`DELETE FROM checkpoints WHERE view = 'leaderboards'`);
    await carryOut(runner, RATINGS_DOWN);
  }
}

/** Tables as their descriptions say: what only the rows of their day needed, defaults above all, is gone. */
export class Described1763330500000 implements MigrationInterface {
  readonly name = 'Described1763330500000';

  async up(runner: QueryRunner): Promise<void> {
    for (const [table, defaults] of Object.entries(DEFAULTS)) {
      for (const column of Object.keys(defaults))
        await runner.query(`ALTER TABLE ${table} ALTER ${column} DROP DEFAULT`);
    }
    await runner.query('ALTER TABLE rated_matches ALTER season TYPE text');
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [table, defaults] of Object.entries(DEFAULTS)) {
      for (const [column, value] of Object.entries(defaults)) {
        await runner.query(`ALTER TABLE ${table} ALTER ${column} SET DEFAULT ${value}`);
      }
    }
    await runner.query('ALTER TABLE rated_matches ALTER season TYPE text COLLATE "C"');
  }
}

const glicko = { season: "'all'", glicko: '1500', deviation: '350', volatility: '0.06', period: '0' };
const DEFAULTS = {
  rating_history: { ...glicko, position: '0' },
  ratings: {
    ...glicko,
    streak: '0',
    best_streak: '0',
    start_glicko: '1500',
    start_deviation: '350',
    start_volatility: '0.06',
    information: '0',
    surprise: '0',
  },
};

export class Accounts1763310000000 implements MigrationInterface {
  readonly name = 'Accounts1763310000000';

  up = (runner: QueryRunner) => carryOut(runner, ACCOUNTS);

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE members, audit');
  }
}

const ACCOUNTS = `
CREATE TABLE members (
  member_id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  role text NOT NULL,
  PRIMARY KEY (member_id, account_id)
);;
CREATE TABLE audit (
  account_id text COLLATE "C" NOT NULL,
  position int8 NOT NULL,
  at timestamptz NOT NULL,
  type text NOT NULL,
  actor_id text NOT NULL,
  actor_role text NOT NULL,
  detail jsonb NOT NULL,
  PRIMARY KEY (account_id, position)
);;
`;

/**
 * Every row of a checkpoint names the rows that it stands for, in a build's own book as well: what is swapped in brings a
 * name that nobody has seen before. And what is to be built anew is written down, so that any process can ask for it.
 */
export class Generations1763400000000 implements MigrationInterface {
  readonly name = 'Generations1763400000000';

  up = (runner: QueryRunner) => carryOut(runner, GENERATIONS);

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE builds');
    await runner.query('ALTER TABLE checkpoints DROP COLUMN generation');
  }
}

const GENERATIONS = `
ALTER TABLE checkpoints ADD COLUMN generation text NOT NULL DEFAULT gen_random_uuid()::text;;
CREATE TABLE builds (
  view text COLLATE "C" PRIMARY KEY,
  version int4 NOT NULL,
  status jsonb
);;
`;

export class Runners1763300000000 implements MigrationInterface {
  readonly name = 'Runners1763300000000';

  up = (runner: QueryRunner) => carryOut(runner, RUNNERS);

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE runners, leases');
  }
}

const RUNNERS = `
CREATE TABLE runners (
  runner_id text COLLATE "C" PRIMARY KEY,
  public_key text NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  registered_at timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  claimed int4 NOT NULL,
  played int4 NOT NULL
);;
CREATE TABLE leases (
  match_id text COLLATE "C" PRIMARY KEY,
  runner_id text COLLATE "C" NOT NULL,
  attempt int4 NOT NULL,
  lease_until timestamptz NOT NULL
);;
CREATE INDEX leases_by_runner ON leases (runner_id, match_id);;
`;

/**
 * Seats as rows, and an index of the matches that are not over. Seats are filled from the matches that are there, so that
 * those who read find all of an agent's matches also while the view is being built anew.
 */
export class Seats1763420000000 implements MigrationInterface {
  readonly name = 'Seats1763420000000';

  up = (runner: QueryRunner) => carryOut(runner, SEATS);

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE match_seats');
    await runner.query('DROP INDEX matches_open');
    await runner.query('CREATE INDEX matches_by_agent ON matches USING gin (seats jsonb_path_ops)');
    // Older code knows how to build the rows that it finds missing.
    await runner.query(`DELETE FROM checkpoints WHERE view = 'matches' AND version > 2`);
  }
}

export const SEATS_OF_MATCHES = `INSERT INTO match_seats
  SELECT DISTINCT ON (1, 2) seat ->> 'agentId', position, seat ->> 'accountId', match_id, proposed_at
  FROM matches CROSS JOIN LATERAL jsonb_array_elements(seats) seat`;

const SEATS = `
CREATE TABLE match_seats (
  agent_id text COLLATE "C" NOT NULL,
  position int8 NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  match_id text COLLATE "C" NOT NULL,
  proposed_at timestamptz NOT NULL,
  PRIMARY KEY (agent_id, position)
);;
CREATE INDEX match_seats_by_account ON match_seats (account_id, proposed_at, match_id);;
${SEATS_OF_MATCHES};;
DROP INDEX matches_by_agent;;
CREATE INDEX matches_open ON matches (position) WHERE status IN ('proposed', 'ready', 'playing');;
`;

export async function carryOut(runner: QueryRunner, statements: string): Promise<void> {
  for (const statement of statements.split(/;;\s*/)) if (statement.trim()) await runner.query(statement);
}

/** The ledger's first rule: it looked at what was inserted, and at nothing else. */
export const SUMS_OF_INSERTS = `CREATE FUNCTION postings_sum_to_zero() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong int8;
BEGIN
  SELECT position INTO wrong FROM changed GROUP BY position, currency HAVING sum(amount_cents) <> 0 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'the postings at position % do not sum to zero', wrong USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $$;;
CREATE TRIGGER postings_sum_to_zero AFTER INSERT ON postings
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION postings_sum_to_zero();;
`;

const FOUNDATION = `
CREATE TABLE checkpoints (
  view text COLLATE "C" PRIMARY KEY,
  version int4 NOT NULL,
  position int8 NOT NULL
);;
CREATE TABLE accounts (
  account_id text COLLATE "C" PRIMARY KEY,
  display_name text NOT NULL,
  registered_at timestamptz NOT NULL
);;
CREATE TABLE agents (
  agent_id text COLLATE "C" PRIMARY KEY,
  owner_id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  games jsonb NOT NULL,
  runtime text NOT NULL,
  version int4 NOT NULL,
  code_digest text NOT NULL,
  submitted_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);;
CREATE INDEX agents_by_owner ON agents (owner_id, agent_id);;
CREATE TABLE agent_versions (
  agent_id text COLLATE "C" NOT NULL,
  version int4 NOT NULL,
  code_digest text NOT NULL,
  code_bytes int4 NOT NULL,
  published_at timestamptz NOT NULL,
  PRIMARY KEY (agent_id, version)
);;
CREATE TABLE matches (
  match_id text COLLATE "C" PRIMARY KEY,
  game text COLLATE "C" NOT NULL,
  seed text NOT NULL,
  status text COLLATE "C" NOT NULL,
  reason text NOT NULL,
  detail text NOT NULL,
  seats jsonb NOT NULL,
  winner int4,
  stake_cents numeric(38, 0) NOT NULL,
  pot_cents numeric(38, 0) NOT NULL,
  rake_cents numeric(38, 0) NOT NULL,
  currency text NOT NULL,
  turns int4 NOT NULL,
  attempts int4 NOT NULL,
  proposed_at timestamptz NOT NULL,
  ended_at timestamptz,
  position int8 NOT NULL
);;
CREATE INDEX matches_by_position ON matches (position DESC);;
CREATE INDEX matches_by_status ON matches (status, position DESC);;
CREATE INDEX matches_by_game ON matches (game, position DESC);;
CREATE INDEX matches_by_agent ON matches USING gin (seats jsonb_path_ops);;
CREATE TABLE turns (
  match_id text COLLATE "C" NOT NULL,
  turn int4 NOT NULL,
  seat int4 NOT NULL,
  action text NOT NULL,
  fuel int8 NOT NULL,
  PRIMARY KEY (match_id, turn)
);;
CREATE TABLE ratings (
  game text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  rating float8 NOT NULL,
  games int4 NOT NULL,
  wins int4 NOT NULL,
  draws int4 NOT NULL,
  losses int4 NOT NULL,
  last_match_id text NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (game, agent_id)
);;
CREATE INDEX ratings_ranked ON ratings (game, rating DESC, agent_id);;
CREATE TABLE rating_history (
  game text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  games int4 NOT NULL,
  match_id text NOT NULL,
  before float8 NOT NULL,
  after float8 NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (game, agent_id, games)
);;
CREATE TABLE postings (
  position int8 NOT NULL,
  line int4 NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount_cents numeric(38, 0) NOT NULL,
  event_type text NOT NULL,
  match_id text,
  at timestamptz NOT NULL,
  PRIMARY KEY (position, line)
);;
CREATE INDEX postings_by_account ON postings (account, currency, position DESC);;
${SUMS_OF_INSERTS}CREATE TABLE balances (
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  balance_cents numeric(38, 0) NOT NULL,
  postings int4 NOT NULL,
  PRIMARY KEY (account, currency)
);;
`;

const RATINGS = `
CREATE TABLE dead_letters (
  view text COLLATE "C" NOT NULL,
  position int8 NOT NULL,
  event_id text NOT NULL,
  type text NOT NULL,
  version int4 NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  PRIMARY KEY (view, position)
);;
ALTER TABLE ratings
  ADD COLUMN season text COLLATE "C" NOT NULL DEFAULT 'all',
  ADD COLUMN streak int4 NOT NULL DEFAULT 0,
  ADD COLUMN best_streak int4 NOT NULL DEFAULT 0,
  ADD COLUMN glicko float8 NOT NULL DEFAULT 1500,
  ADD COLUMN deviation float8 NOT NULL DEFAULT 350,
  ADD COLUMN volatility float8 NOT NULL DEFAULT 0.06,
  ADD COLUMN period int4 NOT NULL DEFAULT 0,
  ADD COLUMN start_glicko float8 NOT NULL DEFAULT 1500,
  ADD COLUMN start_deviation float8 NOT NULL DEFAULT 350,
  ADD COLUMN start_volatility float8 NOT NULL DEFAULT 0.06,
  ADD COLUMN information float8 NOT NULL DEFAULT 0,
  ADD COLUMN surprise float8 NOT NULL DEFAULT 0,
  DROP CONSTRAINT ratings_pkey,
  ADD CONSTRAINT ratings_pkey PRIMARY KEY (season, game, agent_id);;
DROP INDEX ratings_ranked;;
CREATE INDEX ratings_ranked ON ratings (season, game, rating DESC, agent_id);;
CREATE INDEX ratings_by_glicko ON ratings (season, game, glicko DESC, agent_id);;
CREATE INDEX ratings_by_game ON ratings (game, season);;
ALTER TABLE rating_history
  ADD COLUMN season text COLLATE "C" NOT NULL DEFAULT 'all',
  ADD COLUMN position int8 NOT NULL DEFAULT 0,
  ADD COLUMN glicko float8 NOT NULL DEFAULT 1500,
  ADD COLUMN deviation float8 NOT NULL DEFAULT 350,
  ADD COLUMN volatility float8 NOT NULL DEFAULT 0.06,
  ADD COLUMN period int4 NOT NULL DEFAULT 0,
  DROP CONSTRAINT rating_history_pkey;;
UPDATE rating_history SET position = games;;
ALTER TABLE rating_history ADD CONSTRAINT rating_history_pkey PRIMARY KEY (season, game, agent_id, position);;
CREATE TABLE head_to_head (
  season text COLLATE "C" NOT NULL,
  game text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  opponent_id text COLLATE "C" NOT NULL,
  wins int4 NOT NULL,
  draws int4 NOT NULL,
  losses int4 NOT NULL,
  PRIMARY KEY (season, game, agent_id, opponent_id)
);;
CREATE TABLE rated_matches (
  match_id text COLLATE "C" PRIMARY KEY,
  game text COLLATE "C" NOT NULL,
  season text COLLATE "C" NOT NULL,
  position int8 NOT NULL,
  at timestamptz NOT NULL,
  seats jsonb NOT NULL
);;
CREATE INDEX rated_matches_by_game ON rated_matches (game);;
`;

const RATINGS_DOWN = `
ALTER TABLE ratings
  DROP COLUMN season, DROP COLUMN streak, DROP COLUMN best_streak, DROP COLUMN glicko, DROP COLUMN deviation,
  DROP COLUMN volatility, DROP COLUMN period, DROP COLUMN start_glicko, DROP COLUMN start_deviation,
  DROP COLUMN start_volatility, DROP COLUMN information, DROP COLUMN surprise,
  ADD CONSTRAINT ratings_pkey PRIMARY KEY (game, agent_id);;
CREATE INDEX ratings_ranked ON ratings (game, rating DESC, agent_id);;
ALTER TABLE rating_history
  DROP COLUMN season, DROP COLUMN position, DROP COLUMN glicko, DROP COLUMN deviation, DROP COLUMN volatility,
  DROP COLUMN period, ADD CONSTRAINT rating_history_pkey PRIMARY KEY (game, agent_id, games);;
`;
