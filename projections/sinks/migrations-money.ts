import type { MigrationInterface, QueryRunner } from 'typeorm';
import { carryOut, SUMS_OF_INSERTS } from './migrations.js';

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
    await runner.query('DROP FUNCTION postings_sum_to_zero CASCADE');
    await carryOut(runner, SUMS_OF_INSERTS);
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

/** How much of a payment went back. The view's new version fills it in. */
export class PaymentsReturned1763500000000 implements MigrationInterface {
  readonly name = 'PaymentsReturned1763500000000';

  up = (runner: QueryRunner) => carryOut(runner, PAYMENTS_RETURNED);

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE payments DROP COLUMN returned_cents');
  }
}

const PAYMENTS_RETURNED = `
ALTER TABLE payments ADD COLUMN returned_cents numeric(38, 0) NOT NULL DEFAULT 0;;
ALTER TABLE payments ALTER returned_cents DROP DEFAULT;;
`;
