import { argv, exit, kill, pid } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { upcast } from '../../projections/views.js';
import type { ArenaEvent } from '../../services/arena/index.js';
import { derivedId, invariant, isAgonError, newMeta, type RecordedEvent, SYSTEM } from '../../services/kernel/index.js';
import type { PaymentEvent } from '../../services/payments/index.js';
import { commandNamed, openWriteSide, seatOf, wonBy } from '../harness/write-side.js';
import type { Point } from './settle.js';
import { between, seededRandom } from './workload.js';

// Started by the chaos run: a write side with its log and policies that plays matches for money to their end, unless it
// kills itself at the point it was given. Everything it does follows from the seed, so that the next one goes on.
const [folder = '', seed = '', at = '', storeUrl = ''] = argv.slice(3);
const point = at === '' ? undefined : (JSON.parse(at) as Point);
const ACCOUNTS = ['ada', 'bob', 'cyd', 'dan'];
const MATCHES = 8;
const START_MS = Date.parse('2026-01-01T00:00:00.000Z');

let met = 0;

const killing: Parameters<typeof openWriteSide>[1] = async (command, carryOut) => {
  const here = command.type === point?.command && ++met === point.nth;
  // Written or not: whoever was killed before the answer cannot know.
  if (here && point.when === 'before') kill(pid, 'SIGKILL');
  const answer = carryOut();
  if (here && point.when === 'during') setImmediate(() => kill(pid, 'SIGKILL'));
  const handled = await answer;
  if (here) kill(pid, 'SIGKILL');
  return handled;
};
const { store, execute, settled, close } = await openWriteSide(folder, killing, storeUrl);

/** Once each, by a name for it. */
const send = (type: string, data: object, ...name: (string | number)[]) => {
  const id = derivedId('settle', seed, ...name);
  return execute(commandNamed(type, data, newMeta(SYSTEM, { id, clock: () => new Date(START_MS).toISOString() })));
};
const matchIds = Array.from({ length: MATCHES }, (_, i) => derivedId('settle', seed, 'match', i));

const payees = ACCOUNTS.slice(0, 3);
const over = new Set<string>();
const runner = store.subscribe({ after: 0 }, async (events) => {
  for (const event of events)
    await play(upcast(event) as RecordedEvent & (ArenaEvent | PaymentEvent)).catch(unlessDone);
});
await pay();
for (let i = 0; i < MATCHES; i++) await propose(i).catch(unlessDone);
await buy();
await withdraw();
while (over.size < MATCHES + payees.length) await sleep(2);
await settled();
await runner.stop();
await close();
exit(0);

/** Whoever goes on after a kill asks for some of what was done already. */
function unlessDone(error: unknown): void {
  const done = /^(ARENA\.(MATCH_EXISTS|NOT_READY|SETTLED|LEASE_LOST)|PAYMENTS\.EXISTS)$/;
  if (!isAgonError(error) || !done.test(error.code)) throw error;
}

/** The last account is poor: some of its stakes are refused. */
async function pay(): Promise<void> {
  for (const accountId of ACCOUNTS) {
    const amountCents = accountId === 'dan' ? '250' : '5000';
    const deposit = { accountId, amountCents, currency: 'USD', depositId: `deposit-${accountId}` };
    const withdrawableAt = new Date(START_MS).toISOString();
    await send('DepositFunds', { ...deposit, withdrawableAt }, 'deposit', accountId);
  }
}

async function propose(i: number): Promise<void> {
  const random = seededRandom('settle', seed, i);
  const matchId = matchIds[i] ?? '';
  const first = between(random, 0, ACCOUNTS.length - 1);
  const seats = Array.from({ length: between(random, 2, 3) }, (_, seat) =>
    seatOf(ACCOUNTS[(first + seat) % ACCOUNTS.length] ?? ''),
  );
  const bounty = random() < 0.5 ? { bounty: { bountyId: `b-${i}`, sponsorId: 'cyd', amountCents: '101' } } : {};
  const stakeCents = `${between(random, 0, 2) * 100}`;
  const terms = { matchId, game: 'connect-four', stakeCents, currency: 'USD', seed: `${i}`, rakeBps: 700 };
  await send('ProposeMatch', { ...terms, seats, ...bounty, disputeWindowMs: 0 }, 'propose', i);
}

/** Plays what is ready, voids some of it instead, reverses some of what was settled, and pays out what was asked for. */
async function play({ type, data }: ArenaEvent | PaymentEvent): Promise<void> {
  if (type === 'WithdrawalRequested') return transfer(data);
  if (type === 'WithdrawalPaid' || type === 'WithdrawalRefused') over.add(data.withdrawalId);
  if (!('matchId' in data)) return;
  const i = matchIds.indexOf(data.matchId);
  const random = seededRandom('settle', seed, i, 'play');
  const [isVoid, isReversed, winner] = [random() < 0.2, random() < 0.3, between(random, 0, 2)];
  const { matchId } = data;
  if (type === 'MatchReady') {
    if (isVoid) await send('VoidMatch', { matchId, detail: 'chaos' }, 'void', i);
    else await report(i, winner);
  } else if (type === 'MatchSettled' && isReversed) {
    await send('ReverseMatch', { matchId, reason: 'chaos' }, 'reverse', i);
  } else if (type === 'MatchSettled' || type === 'MatchVoided' || type === 'MatchReversed') over.add(matchId);
}

async function report(i: number, winner: number): Promise<void> {
  const attempt = { matchId: matchIds[i] ?? '', runnerId: 'runner', attempt: 1 };
  const [proposed] = await store.readStream(`match-${attempt.matchId}`, { limit: 1 });
  invariant(proposed, 'A match that is ready was proposed.');
  const seats = (proposed.data as { seats: unknown[] }).seats.length;
  await send('ClaimMatch', { ...attempt, leaseMs: 3_600_000 }, 'claim', i);
  await send('ReportMatch', { ...attempt, ...wonBy(winner % seats, seats) }, 'report', i);
}

async function buy(): Promise<void> {
  const pack = { packId: 'small', creditCents: '1000', paid: { amountCents: '200', currency: 'USD' } };
  for (const accountId of payees) await send('BuyCredits', { accountId, ...pack }, 'buy', accountId);
}

/** Money that leaves the house: asked for, held, and posted when it has gone. */
async function withdraw(): Promise<void> {
  for (const accountId of payees) {
    const account = { accountId, payoutAccountId: `acct_${accountId}`, enabled: true, asOfS: 1 };
    const notice = { kind: 'payout-account', ...account };
    await send('TakeNotice', { accountId, notice }, 'payout account', accountId);
    const withdrawalId = derivedId('settle', seed, 'withdrawal', accountId);
    const asked = { accountId, withdrawalId, amountCents: '300', currency: 'USD' };
    await send('AskWithdrawal', asked, 'withdraw', accountId).catch(unlessDone);
  }
}

/** The provider's part; what the real one may do to it is for the other half of this run. */
async function transfer({ accountId, withdrawalId }: { accountId: string; withdrawalId: string }): Promise<void> {
  await send('RecordTransfer', { accountId, withdrawalId, transferId: `tr_${accountId}` }, 'transfer', accountId);
}
