import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A step by which tables became what they are: the name under which it is recorded, and its statements. */
const migration = (name: string, up: string, down: string): (new () => MigrationInterface) =>
  class {
    readonly name = name;
    up = (runner: QueryRunner) => carryOut(runner, up);
    down = (runner: QueryRunner) => carryOut(runner, down);
  };

/** Statements are divided by two semicolons, since functions have single ones. */
async function carryOut(runner: QueryRunner, statements: string): Promise<void> {
  for (const statement of statements.split(/;;\s*/)) await runner.query(statement);
}

/** The ledger's first rule: it looked at what was inserted, and at nothing else. */
const SUMS_OF_INSERTS = `CREATE FUNCTION postings_sum_to_zero() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong int8;
BEGIN
  SELECT position INTO wrong FROM changed GROUP BY position, currency HAVING sum(amount_cents) <> 0 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'the postings at position % do not sum to zero', wrong USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $$;;
CREATE TRIGGER postings_sum_to_zero AFTER INSERT ON postings
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION postings_sum_to_zero()`;

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
END $$;;
CREATE CONSTRAINT TRIGGER postings_sum_to_zero AFTER INSERT OR UPDATE OR DELETE ON postings
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION postings_sum_to_zero()`;

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

const overDefaults = (change: (table: string, column: string, value: string) => string): string =>
  Object.entries(DEFAULTS)
    .flatMap(([table, columns]) => Object.entries(columns).map(([column, value]) => change(table, column, value)))
    .join(';;');

export const SEATS_OF_MATCHES = `INSERT INTO match_seats
  SELECT DISTINCT ON (1, 2) seat ->> 'agentId', position, seat ->> 'accountId', match_id, proposed_at
  FROM matches CROSS JOIN LATERAL jsonb_array_elements(seats) seat`;

/** In the order in which they are carried out; never edited once released. */
export const migrations: readonly (new () => MigrationInterface)[] = [
  /** Text is compared by code units everywhere, so that an order never depends on the machine's language. */
  migration(
    'Foundation1760000000000',
    `
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
${SUMS_OF_INSERTS};;
CREATE TABLE balances (
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  balance_cents numeric(38, 0) NOT NULL,
  postings int4 NOT NULL,
  PRIMARY KEY (account, currency)
)`,
    `
DROP TABLE checkpoints, accounts, agents, agent_versions, matches, turns, ratings, rating_history, postings, balances;;
DROP FUNCTION postings_sum_to_zero`,
  ),
  /**
   * Seasons, Glicko-2, head to head, and what the engine needs to put events aside. Columns get defaults, so that the rows
   * that are there serve on until the view has been built anew beside them.
   */
  migration(
    'Ratings1763200000000',
    `
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
CREATE INDEX rated_matches_by_game ON rated_matches (game)`,
    `
DROP TABLE dead_letters, head_to_head, rated_matches;;
TRUNCATE ratings, rating_history;;
DELETE FROM checkpoints WHERE view = 'leaderboards';;
ALTER TABLE ratings
  DROP COLUMN season, DROP COLUMN streak, DROP COLUMN best_streak, DROP COLUMN glicko, DROP COLUMN deviation,
  DROP COLUMN volatility, DROP COLUMN period, DROP COLUMN start_glicko, DROP COLUMN start_deviation,
  DROP COLUMN start_volatility, DROP COLUMN information, DROP COLUMN surprise,
  ADD CONSTRAINT ratings_pkey PRIMARY KEY (game, agent_id);;
CREATE INDEX ratings_ranked ON ratings (game, rating DESC, agent_id);;
ALTER TABLE rating_history
  DROP COLUMN season, DROP COLUMN position, DROP COLUMN glicko, DROP COLUMN deviation, DROP COLUMN volatility,
  DROP COLUMN period, ADD CONSTRAINT rating_history_pkey PRIMARY KEY (game, agent_id, games)`,
  ),
  /**
   * The ledger's own rule: whatever a transaction did to postings, every position it touched sums to zero per currency when
   * it commits. Deferred, so that the two sides of a transfer may be written one after the other; and it also holds for
   * whoever changes or removes a row by hand.
   */
  migration(
    'Ledger1763280000000',
    `
DROP TRIGGER postings_sum_to_zero ON postings;;
DROP FUNCTION postings_sum_to_zero;;
${LEDGER_RULE}`,
    `DROP FUNCTION postings_sum_to_zero CASCADE;; ${SUMS_OF_INSERTS}`,
  ),
  migration(
    'Payments1763280001000',
    `
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
)`,
    'DROP TABLE payments, payers',
  ),
  /**
   * The same rule at a fraction of the cost. A statement that changes no sum needs no look at its end: only positions whose
   * sum a statement has changed are noted, and looked at when the transaction commits. By induction no other position can
   * be off. A batch of whole transfers notes nothing. (CASCADE: a build that was interrupted has triggers of its own.)
   */
  migration(
    'LedgerByStatement1763290000000',
    `
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
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION postings_note()`,
    `
DROP TABLE postings_to_check;;
DROP FUNCTION postings_note, postings_sum_to_zero CASCADE;;
${LEDGER_RULE}`,
  ),
  migration(
    'Runners1763300000000',
    `
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
CREATE INDEX leases_by_runner ON leases (runner_id, match_id)`,
    'DROP TABLE runners, leases',
  ),
  migration(
    'Accounts1763310000000',
    `
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
)`,
    'DROP TABLE members, audit',
  ),
  /** Tables as their descriptions say: what only the rows of their day needed, defaults above all, is gone. */
  migration(
    'Described1763330500000',
    `${overDefaults((table, column) => `ALTER TABLE ${table} ALTER ${column} DROP DEFAULT`)};;
ALTER TABLE rated_matches ALTER season TYPE text`,
    `${overDefaults((table, column, value) => `ALTER TABLE ${table} ALTER ${column} SET DEFAULT ${value}`)};;
ALTER TABLE rated_matches ALTER season TYPE text COLLATE "C"`,
  ),
  /**
   * Every row of a checkpoint names the rows that it stands for, in a build's own book as well: what is swapped in brings a
   * name that nobody has seen before. And what is to be built anew is written down, so that any process can ask for it.
   */
  migration(
    'Generations1763400000000',
    `
ALTER TABLE checkpoints ADD COLUMN generation text NOT NULL DEFAULT gen_random_uuid()::text;;
CREATE TABLE builds (
  view text COLLATE "C" PRIMARY KEY,
  version int4 NOT NULL,
  status jsonb
)`,
    'DROP TABLE builds;; ALTER TABLE checkpoints DROP COLUMN generation',
  ),
  /**
   * Seats as rows, and an index of the matches that are not over. Seats are filled from the matches that are there, so that
   * those who read find all of an agent's matches also while the view is being built anew.
   */
  migration(
    'Seats1763420000000',
    `
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
CREATE INDEX matches_open ON matches (position) WHERE status IN ('proposed', 'ready', 'playing')`,
    // Older code knows how to build the rows that it finds missing.
    `
DROP TABLE match_seats;;
DROP INDEX matches_open;;
CREATE INDEX matches_by_agent ON matches USING gin (seats jsonb_path_ops);;
DELETE FROM checkpoints WHERE view = 'matches' AND version > 2`,
  ),
  /** How much of a payment went back. The view's new version fills it in. */
  migration(
    'PaymentsReturned1763500000000',
    `
ALTER TABLE payments ADD COLUMN returned_cents numeric(38, 0) NOT NULL DEFAULT 0;;
ALTER TABLE payments ALTER returned_cents DROP DEFAULT`,
    'ALTER TABLE payments DROP COLUMN returned_cents',
  ),
];
