import pg from 'pg';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { EscrowStake } from '../../services/arena/commands.js';
import { arena, ClaimMatch, ProposeMatch, ReportMatch } from '../../services/arena/index.js';
import {
  type Command,
  createHandle,
  derivedId,
  type EventStore,
  type Handle,
  newMeta,
  type RecordedEvent,
  type SealedEvent,
  SYSTEM,
} from '../../services/kernel/index.js';
import { GrantCredits, wallet } from '../../services/wallet/index.js';
import { stakes } from '../../services/wallet/policies.js';
import { withPostgres } from '../harness/folders.js';
import { pagesOfLog, seatOf, streamsIn, wonBy } from '../harness/write-side.js';
import { withStore } from './command.js';
import { type BenchOptions, compare, type Report, scaled } from './rounds.js';
import { drive } from './workload.js';

const IN_FLIGHT = 64;
const SETTLEMENTS = 7_680;
const STAKE_CENTS = '500';
const PAYOUT_CENTS = '900';
const RAKE_CENTS = '100';

/** One match of two, each with a wallet that no other match in flight uses. */
interface Bout {
  readonly matchId: string;
  readonly accounts: readonly string[];
  /** The proposal as the log has it: what the policy of stakes reacts to. */
  readonly proposed: RecordedEvent;
}

/** Settlements a second: two holds, the settlement, two posts. */
export async function settle(options: BenchOptions): Promise<Report> {
  const perLane = Math.ceil(scaled(options, SETTLEMENTS) / IN_FLIGHT);
  const written = await writtenBy(perLane);
  return withPostgres(
    async (url) => {
      const contenders = {
        settle: () => withStore((store) => settleAll(store, perLane)),
        append: () => withStore((store) => appendAll(store, written)),
        postgres: () => transferAll(url, perLane),
      };
      const ratios = { append: ['settle', 'append'], postgres: ['settle', 'postgres'] } as const;
      return compare(contenders, options, { ratios, targets: { append: 0.4, postgres: 3 }, notes });
    },
    { connectionsMax: IN_FLIGHT + 8 },
  );
}

const notes = [
  'Settlements a second, 64 in flight. settle: policies and handle() on the embedded log, matches claimed beforehand. ' +
    'append: the same events, sealed beforehand, in the same appends. postgres: the same four transfers (two stakes, ' +
    'rake, payout), a transaction each, on 64 connections with synchronous_commit on.',
];

async function settleAll(store: EventStore, perLane: number): Promise<number> {
  const handle = createHandle({ store });
  const lanes = await claimed(store, handle, perLane);
  return drive(lanes, (bout) => settleOne(handle, bout));
}

/** What the arena does from the proposal on, in the commands that its own policies make. */
async function settleOne(handle: Handle, { matchId, proposed }: Bout): Promise<void> {
  await Promise.all(stakes.react(proposed).map((command) => handle(wallet, command)));
  const report = won(matchId);
  const { events, stream } = await handle(arena, report);
  const settled = { ...proposed, ...events[1], id: derivedId(report.meta.id, stream, 1) };
  await Promise.all(stakes.react(settled).map((command) => handle(wallet, command)));
}

/** Wallets with money in them, and matches that wait for their runner's report. */
async function claimed(store: EventStore, handle: Handle, perLane: number): Promise<Bout[][]> {
  const lane = async (number: number) => {
    const accounts = [0, 1].map((seat) => `player-${number}-${seat}`);
    for (const accountId of accounts) {
      const grant = { accountId, amountCents: '100000000', currency: 'PLAY', reason: 'Benchmark' };
      await handle(wallet, new GrantCredits(grant, newMeta(SYSTEM)));
    }
    const bouts: Bout[] = [];
    for (let i = 0; i < perLane; i++) {
      const matchId = derivedId('settle', number, i);
      for (const command of untilClaimed(matchId, accounts)) await handle(arena, command);
      const [proposed] = await store.readStream(`match-${matchId}`, { limit: 1 });
      bouts.push({ matchId, accounts, proposed: proposed as RecordedEvent });
    }
    return bouts;
  };
  return Promise.all(Array.from({ length: IN_FLIGHT }, (_, number) => lane(number)));
}

function untilClaimed(matchId: string, accounts: readonly string[]): Command[] {
  const seats = accounts.map((accountId) => seatOf(accountId));
  const terms = { matchId, game: 'connect-four', stakeCents: STAKE_CENTS, currency: 'PLAY', seed: 's', rakeBps: 1000 };
  const meta = () => newMeta(SYSTEM);
  return [
    new ProposeMatch({ ...terms, seats, disputeWindowMs: 172_800_000 }, meta()),
    ...seats.map((_, seat) => new EscrowStake({ matchId, seat }, meta())),
    new ClaimMatch({ matchId, runnerId: 'runner-1', leaseMs: 3_600_000 }, meta()),
  ];
}

const won = (matchId: string): ReportMatch =>
  new ReportMatch({ matchId, runnerId: 'runner-1', attempt: 1, ...wonBy(0) }, newMeta(SYSTEM));

/** The appends of one settlement, in three steps: the holds, the settlement, the posts. */
type Steps = readonly (readonly (readonly SealedEvent[])[])[];

/** The events of all settlements, as handle() seals them. */
async function writtenBy(perLane: number) {
  const store = new MemoryEventStore();
  const handle = createHandle({ store });
  const lanes = await claimed(store, handle, perLane);
  const sealedAfter = async (position: number) => {
    const events: SealedEvent[] = [];
    for await (const page of pagesOfLog(store, position)) {
      events.push(...page.map(({ position: _position, ...event }) => event as SealedEvent));
    }
    return events;
  };
  const before = await sealedAfter(0);
  const steps: Steps[][] = [];
  for (const lane of lanes) {
    const own: Steps[] = [];
    for (const bout of lane) {
      const from = await store.lastPosition();
      await settleOne(handle, bout);
      const events = await sealedAfter(from);
      const [holds, rest] = [events.slice(0, 2), events.slice(2)];
      const posts = bout.accounts.map((name) => rest.filter(({ stream }) => stream === `wallet-${name}`));
      own.push([holds.map((event) => [event]), [rest.slice(0, 2)], posts]);
    }
    steps.push(own);
  }
  return { before, lanes: steps };
}

async function appendAll(store: EventStore, { before, lanes }: Awaited<ReturnType<typeof writtenBy>>): Promise<number> {
  const append = (events: readonly SealedEvent[]) => {
    const [first] = events as [SealedEvent];
    return store.append(first.stream, first.revision - 1, events);
  };
  await Promise.all([...streamsIn(before).values()].map(append));
  return drive(lanes, async (steps) => {
    for (const appends of steps) await Promise.all(appends.map(append));
  });
}

const SCHEMA = `
DROP TABLE IF EXISTS bench_postings, bench_wallets;
CREATE TABLE bench_wallets (account text PRIMARY KEY, balance_cents numeric NOT NULL CHECK (balance_cents >= 0));
CREATE TABLE bench_postings (
  id bigserial PRIMARY KEY, transfer text NOT NULL, account text NOT NULL, amount_cents numeric NOT NULL, match_id text
)`;

/**
 * Only wallets have a balance to keep: a row for escrow or for the house would be one that all sixty-four wait for. A
 * transfer that was made before is refused by nothing here, which is more than ours may leave out.
 */
async function transferAll(url: string, perLane: number): Promise<number> {
  const clients = Array.from({ length: IN_FLIGHT }, () => new pg.Client({ connectionString: url }));
  try {
    await Promise.all(clients.map((client) => client.connect()));
    await clients[0]?.query(SCHEMA);
    for (const client of clients) await client.query('SET synchronous_commit = on');
    const names = clients.flatMap((_, lane) => [`player-${lane}-0`, `player-${lane}-1`]);
    await clients[0]?.query('INSERT INTO bench_wallets SELECT unnest($1::text[]), 100000000', [names]);
    const lanes = clients.map((_, lane) => Array.from({ length: perLane }, (_, i) => derivedId('settle', lane, i)));
    return await drive(lanes, (matchId, lane) => transferOne(clients[lane] as pg.Client, lane, matchId));
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

async function transferOne(client: pg.Client, lane: number, matchId: string): Promise<void> {
  const [first, second] = [`player-${lane}-0`, `player-${lane}-1`];
  await transfer(client, matchId, first, 'escrow', STAKE_CENTS);
  await transfer(client, matchId, second, 'escrow', STAKE_CENTS);
  await transfer(client, matchId, 'escrow', 'house:rake', RAKE_CENTS);
  await transfer(client, matchId, 'escrow', first, PAYOUT_CENTS);
}

const MOVE = {
  name: 'move',
  text: `UPDATE bench_wallets SET balance_cents = balance_cents + CASE account WHEN $1 THEN -$3::numeric ELSE $3::numeric END
    WHERE account = $1 OR account = $2`,
};
const POST = {
  name: 'post',
  text: `INSERT INTO bench_postings (transfer, account, amount_cents, match_id)
    VALUES ($5, $1, -$3::numeric, $4), ($5, $2, $3::numeric, $4)`,
};

async function transfer(client: pg.Client, matchId: string, from: string, to: string, cents: string): Promise<void> {
  await client.query('BEGIN');
  await client.query({ ...MOVE, values: [from, to, cents] });
  await client.query({ ...POST, values: [from, to, cents, matchId, `${matchId}/${from}/${to}`] });
  await client.query('COMMIT');
}
