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

/**
 * The ledger's own rule: whatever a transaction did to postings, every position it touched sums to zero per currency when
 * it commits. Deferred, so that the two sides of a transfer may be written one after the other; and it also holds for
 * whoever changes or removes a row by hand.
 */
export class Ledger1763280000000 implements MigrationInterface {
  readonly name = 'Ledger1763280000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER postings_sum_to_zero ON postings');
    await runner.query('DROP FUNCTION postings_sum_to_zero');
    await runner.query(LEDGER_RULE);
    await runner.query(LEDGER_TRIGGER);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER postings_sum_to_zero ON postings');
  }
}

const LEDGER_TRIGGER = `CREATE CONSTRAINT TRIGGER postings_sum_to_zero AFTER INSERT OR UPDATE OR DELETE ON postings
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION postings_sum_to_zero()`;

const LEDGER_RULE = `
CREATE FUNCTION postings_sum_to_zero() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE touched int8;
BEGIN
  FOREACH touched IN ARRAY CASE TG_OP
    WHEN 'INSERT' THEN ARRAY[NEW.position]
    WHEN 'DELETE' THEN ARRAY[OLD.position]
    ELSE ARRAY[NEW.position, OLD.position] END
  LOOP
    IF EXISTS (SELECT FROM postings WHERE position = touched GROUP BY currency HAVING sum(amount_cents) <> 0) THEN
      RAISE EXCEPTION 'the postings at position % do not sum to zero', touched USING ERRCODE = 'check_violation';
    END IF;
  END LOOP;
  RETURN NULL;
END $$`;

/**
 * The same rule at a fraction of the cost. A statement that changes no sum needs no look at its end: only positions whose
 * sum a statement has changed are noted, and looked at when the transaction commits. By induction no other position can
 * be off. A batch of whole transfers notes nothing. (CASCADE: a build that was interrupted has triggers of its own.)
 */
export class LedgerByStatement1763290000000 implements MigrationInterface {
  readonly name = 'LedgerByStatement1763290000000';

  up = (runner: QueryRunner) => carryOut(runner, LEDGER_BY_STATEMENT);

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE postings_to_check');
    await runner.query('DROP FUNCTION postings_note, postings_sum_to_zero CASCADE');
    await runner.query(LEDGER_RULE);
    await runner.query(LEDGER_TRIGGER);
  }
}

const LEDGER_BY_STATEMENT = `
DROP FUNCTION postings_sum_to_zero CASCADE;;
CREATE UNLOGGED TABLE postings_to_check (ledger regclass NOT NULL, position int8 NOT NULL);;
CREATE FUNCTION postings_sum_to_zero() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong bool;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE position = $1 GROUP BY currency HAVING sum(amount_cents) <> 0)',
    NEW.ledger) INTO wrong USING NEW.position;
  IF wrong THEN
    RAISE EXCEPTION 'the postings at position % do not sum to zero', NEW.position USING ERRCODE = 'check_violation';
  END IF;
  DELETE FROM public.postings_to_check WHERE ledger = NEW.ledger AND position = NEW.position;
  RETURN NULL;
END $$;;
CREATE CONSTRAINT TRIGGER postings_sum_to_zero AFTER INSERT ON postings_to_check
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION postings_sum_to_zero();;
CREATE FUNCTION postings_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO public.postings_to_check
      SELECT DISTINCT TG_RELID::regclass, position FROM added GROUP BY position, currency HAVING sum(amount_cents) <> 0;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO public.postings_to_check
      SELECT DISTINCT TG_RELID::regclass, position FROM gone GROUP BY position, currency HAVING sum(amount_cents) <> 0;
  ELSE
    INSERT INTO public.postings_to_check SELECT DISTINCT TG_RELID::regclass, position FROM
      (SELECT position, currency, amount_cents FROM added UNION ALL SELECT position, currency, -amount_cents FROM gone) both_ways
      GROUP BY position, currency HAVING sum(amount_cents) <> 0;
  END IF;
  RETURN NULL;
END $$;;
CREATE TRIGGER postings_added AFTER INSERT ON postings
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION postings_note();;
CREATE TRIGGER postings_changed AFTER UPDATE ON postings
  REFERENCING OLD TABLE AS gone NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION postings_note();;
CREATE TRIGGER postings_removed AFTER DELETE ON postings
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION postings_note();;
`;

export class Payments1763280001000 implements MigrationInterface {
  readonly name = 'Payments1763280001000';

  up = (runner: QueryRunner) => carryOut(runner, PAYMENTS);

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE payments, payers');
  }
}

const PAYMENTS = `
CREATE TABLE payments (
  payment_id text COLLATE "C" PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  amount_cents numeric(38, 0) NOT NULL,
  currency text NOT NULL,
  status text NOT NULL,
  url text,
  detail text NOT NULL,
  requested_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  position int8 NOT NULL
);;
CREATE INDEX payments_by_account ON payments (account_id, position DESC);;
CREATE TABLE payers (
  account_id text COLLATE "C" PRIMARY KEY,
  plan_id text NOT NULL,
  plan_status text NOT NULL,
  payout_account_id text,
  payouts_enabled bool NOT NULL,
  payout_detail text NOT NULL
);;
`;

async function carryOut(runner: QueryRunner, statements: string): Promise<void> {
  for (const statement of statements.split(/;;\s*/)) if (statement.trim()) await runner.query(statement);
}

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
CREATE FUNCTION postings_sum_to_zero() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TABLE balances (
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
