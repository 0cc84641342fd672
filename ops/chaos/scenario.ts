import { hash } from 'node:crypto';
import { createHandle, derivedId, type EventStore, newMeta, runnerIdOf, SYSTEM } from '../../services/kernel/index.js';
import { commandNamed, contextOf, pagesOfLog, policies, seatOf } from '../harness/write-side.js';
import { between, type Random } from './workload.js';

const START_MS = Date.parse('2026-01-01T00:00:00.000Z');
const DAY_MS = 86_400_000;
const LEASE_MS = 3_600_000;
type Data = Readonly<Record<string, unknown>>;
/** Carries out a command by its name, and all that policies make of it. */
type Send = (type: string, data: Data) => Promise<unknown>;

interface Scenario {
  /** Makes its accounts, agents and matches other ones than those of other scenarios. */
  readonly name: string;
  readonly random: Random;
  /** A dozen shows every way in which one can end. */
  readonly matches: number;
  /** Comes before every command; whoever throws here ends the scenario in the middle. */
  onward?(): Promise<void>;
}

/**
 * A part of an arena's life in which everything happens that views react to, by the real deciders and policies: people,
 * agents, runners, matches of every end, payments and withdrawals. What ends somewhere in between stays there.
 */
export async function playScenario(store: EventStore, scenario: Scenario): Promise<void> {
  const send = await senderTo(store, scenario);
  const id = (name: string | number) => derivedId('chapter', scenario.name, name);
  const account = (name: string) => `${name}-${scenario.name}`;
  const scene: Scene = { ...scenario, send, id, account };
  await meetPeople(scene);
  await playMatches(scene);
  await payIn(scene);
  await payOut(scene);
  await send('ErasePerson', { accountId: account('ada'), personId: id('person') });
}

interface Scene extends Scenario {
  readonly send: Send;
  id(name: string | number): string;
  account(name: string): string;
}

async function senderTo(store: EventStore, { name, onward }: Scenario): Promise<Send> {
  const handle = createHandle({ store });
  let seen = await store.lastPosition();
  // Scenarios follow each other: over a few of them ratings see the end of a season.
  let [sent, nowMs] = [0, START_MS + seen * 3_600_000];
  return async (type, data) => {
    await onward?.();
    nowMs += type === 'ExpireHolds' ? DAY_MS : 60_000;
    const id = derivedId('chapter', name, 'command', sent++);
    const command = commandNamed(type, data, newMeta(SYSTEM, { id, clock: () => new Date(nowMs).toISOString() }));
    await handle(contextOf(command), command);
    for await (const page of pagesOfLog(store, seen)) {
      for (const event of page) {
        for (const policy of policies.filter(({ types }) => types.includes(event.type))) {
          for (const reaction of policy.react(event)) await handle(contextOf(reaction), reaction);
        }
        seen = event.position;
      }
    }
  };
}

const hexOf = (text: string, digits: number) => hash('sha256', text).slice(0, digits);
const code = (text: string) => ({ codeDigest: hexOf(text, 64), codeBytes: 10, runtime: 'javascript' });

async function meetPeople({ name, send, id, account }: Scene): Promise<void> {
  const [ada, bob, cyd, org] = ['ada', 'bob', 'cyd', 'org'].map(account) as [string, string, string, string];
  const person = { accountId: ada, personId: id('person') };
  await send('EnrolPerson', person);
  await send('ChangePassword', person);
  await send('EnableTotp', person);
  await send('DisableTotp', person);
  for (const issuer of ['https://id.example', 'https://old.example']) await send('LinkIdentity', { ...person, issuer });
  await send('UnlinkIdentity', { ...person, issuer: 'https://old.example' });
  await send('RefuseSignIn', { accountId: ada, factor: 'password' });
  await send('EndSessions', { accountId: ada, reason: 'lost phone' });
  const session = { accountId: ada, sessionId: hexOf(`session ${name}`, 32) };
  const [tokenHash, nextHash] = [hexOf('first', 64), hexOf('next', 64)];
  await send('OpenSession', {
    ...session,
    epoch: 1,
    methods: ['pwd'],
    tokenHash,
    expiresAt: '2036-01-01T00:00:00.000Z',
  });
  await send('RefreshSession', { ...session, tokenHash, nextHash });
  await send('EndSession', session);
  for (const accountId of [bob, cyd]) await send('RegisterOwner', { accountId, displayName: accountId });
  await send('RegisterOrganisation', { accountId: org, displayName: 'An organisation', founderId: ada });
  for (const memberId of [bob, cyd]) await send('SetMember', { accountId: org, memberId, role: 'member' });
  await send('JoinOrganisation', { accountId: ada, organisationId: org });
  await send('RemoveMember', { accountId: org, memberId: bob });
  await send('LeaveOrganisation', { accountId: ada, organisationId: org });
  const keyId = hexOf(`key ${name}`, 12);
  await send('IssueApiKey', { accountId: bob, keyId, name: 'script', scopes: ['read'], secretHash: tokenHash });
  await send('RevokeApiKey', { accountId: bob, keyId, reason: 'rotated' });
  for (const ownerId of [ada, bob, cyd]) {
    const agent = { ownerId, name: 'bot', games: ['a', 'b'] };
    await send('SubmitAgent', { ...agent, ...code(ownerId) });
    // The last one is poor, so that some stakes are refused.
    const amountCents = ownerId === cyd ? '250' : '100000';
    await send('GrantCredits', { accountId: ownerId, amountCents, currency: 'PLAY', reason: 'welcome' });
  }
  await send('PublishVersion', { ownerId: ada, name: 'bot', ...code('second') });
  await send('RegisterExternalAgent', { ownerId: bob, name: 'outside', games: ['a'] });
}

/** How far a match gets. All ends come before any comes again, so that a short chapter has each of them. */
const ends = [
  'reversed',
  'settled',
  'bounty',
  'voided',
  'ready',
  'claimed',
  'extended',
  'released',
  'requeued',
  'reversed',
  'settled',
  'settled',
] as const;

async function playMatches(scene: Scene): Promise<void> {
  const { name, send, account, matches } = scene;
  const [publicKey, stolenKey] = [hexOf(`runner ${name}`, 64), hexOf(`stolen ${name}`, 64)];
  const runnerId = runnerIdOf(publicKey);
  await send('RegisterRunner', { runnerId, publicKey });
  await send('RegisterRunner', { runnerId: runnerIdOf(stolenKey), publicKey: stolenKey });
  await send('RevokeRunner', { runnerId: runnerIdOf(stolenKey), reason: 'stolen' });
  for (const owner of ['ada', 'bob', 'cyd']) {
    const credits = { accountId: account(owner), amountCents: '1000', currency: 'COMPUTE', reason: 'welcome' };
    await send('GrantCredits', credits);
  }
  for (let i = 0; i < matches; i++) await playMatch(scene, i, runnerId);
}

async function playMatch({ send, id, account, random }: Scene, i: number, runnerId: string): Promise<void> {
  const end = ends[i % ends.length] as (typeof ends)[number];
  const matchId = id(i);
  // Matches that must come to their end are between those who can pay for it.
  const owners = i < ends.length ? ['ada', 'bob'] : ['ada', 'bob', 'cyd'];
  const first = between(random, 0, owners.length - 1);
  const seats = [0, 1].map((seat) => {
    const accountId = account(owners[(first + seat) % owners.length] as string);
    return seatOf(accountId, hexOf(accountId, 64));
  });
  const bounty = { bountyId: `bounty-${i}`, sponsorId: account('bob'), amountCents: '101' };
  const extras = end === 'bounty' ? { bounty, computeCents: '7', disputeWindowMs: 1_000, priority: 2 } : {};
  const terms = { matchId, game: random() < 0.5 ? 'a' : 'b', stakeCents: '100', currency: 'PLAY', seed: `${i}` };
  await send('ProposeMatch', { ...terms, seats, rakeBps: 700, ...extras });
  if (end === 'ready') return;
  const attempt = { matchId, runnerId, attempt: 1 };
  // A stake that was refused has ended it already.
  const claimed = await send('ClaimMatch', { matchId, runnerId, leaseMs: LEASE_MS }).catch(() => false);
  if (end === 'claimed' || claimed === false) return;
  if (end === 'voided') return void (await send('VoidMatch', { matchId, detail: 'power cut' }));
  if (end === 'released') return void (await send('ReleaseMatch', { ...attempt, reason: 'stops' }));
  if (end === 'requeued') return void (await send('FailAttempt', { ...attempt, reason: 'cell died' }));
  await send('ExtendLease', { ...attempt, leaseMs: LEASE_MS });
  if (end === 'extended') return;
  const winner = between(random, 0, 2);
  const scores = winner === 2 ? [0.5, 0.5] : [1 - winner, winner];
  const outcome = { winner: winner === 2 ? null : winner, scores, reason: 'line', detail: '', seatAtFault: null };
  const turns = [1, 2, 3].map((turn) => ({ turn, seat: (turn + 1) % 2, action: turn, fuel: turn }));
  const usage = [0, 1].map((seat) => ({ fuel: 9_000 + seat, peakMemoryBytes: 70_000, cpuMs: 1, wallMs: 2 }));
  const execution = { driver: 'wasm', gameVersion: 1, limits: { turnFuel: 1 }, usage };
  await send('ReportMatch', { ...attempt, turns, outcome, execution });
  if (end === 'reversed') await send('ReverseMatch', { matchId, reason: 'the rules were broken' });
}

const PRICE = { amountCents: '5000', currency: 'USD' } as const;

/** Tells an account what the provider says about it. */
const tellerOf = (send: Send) => (notice: Data) => send('TakeNotice', { accountId: notice.accountId, notice });

/** Payments that each stop at another point of their life. */
async function payIn({ name, send, id, account }: Scene): Promise<void> {
  const accountId = account('bob');
  const checkout = async (label: string, until: 'requested' | 'open' | 'paid', owner = accountId) => {
    const payment = { accountId: owner, paymentId: id(label) };
    await send('RequestCheckout', { ...payment, order: { kind: 'deposit', ...PRICE, clearingS: 0 } });
    if (until === 'requested') return payment;
    await send('RecordCheckout', { ...payment, sessionId: 'cs_1', url: 'https://pay.example/1' });
    if (until === 'paid') await tell({ kind: 'paid', ...payment, ...PRICE, chargeId: 'pi_1' });
    return payment;
  };
  const tell = tellerOf(send);
  await checkout('requested', 'requested');
  await checkout('opened', 'open');
  await send('FailCheckout', { ...(await checkout('failed', 'requested')), reason: 'card refused' });
  await checkout('received', 'paid');
  const asked = { ...(await checkout('asked back', 'paid')), requestId: id('asked') };
  await send('RequestRefund', { ...asked, reason: 'asked for' });
  const refused = { ...(await checkout('kept', 'paid')), requestId: id('refused') };
  await send('RequestRefund', { ...refused, reason: 'asked for' });
  await send('RefuseRefund', { ...refused, reason: 'too old' });
  const refund = (payment: Data, failed: boolean) =>
    tell({ kind: 'refund', ...payment, ...PRICE, refundId: `re_${payment.paymentId}`.replaceAll('-', ''), failed });
  await refund(await checkout('refunded', 'paid'), false);
  const returned = await checkout('refund failed', 'paid');
  await refund(returned, false);
  await refund(returned, true);
  const dispute = (payment: Data, outcome: string) =>
    tell({ kind: 'dispute', ...payment, ...PRICE, disputeId: `dp_${payment.paymentId}`.replaceAll('-', ''), outcome });
  await dispute(await checkout('disputed', 'paid'), 'open');
  for (const outcome of ['won', 'lost']) {
    const payment = await checkout(outcome, 'paid');
    await dispute(payment, 'open');
    await dispute(payment, outcome);
  }
  await send('BuyCredits', { accountId, packId: 'small', creditCents: '900', paid: { ...PRICE, amountCents: '200' } });

  // Spent before it is charged back: what is missing is owed, and paid by what comes in next.
  const cyd = account('cyd');
  const spent = await checkout('spent', 'paid', cyd);
  const hold = { accountId: cyd, holdId: `spent-${name}` };
  await send('HoldFunds', { ...hold, ...PRICE, purpose: { kind: 'other', note: 'a fee' } });
  await send('PostHold', { ...hold, payoutCents: '0' });
  await dispute(spent, 'open');
  await checkout('repays', 'paid', cyd);

  const plan = { accountId, planId: 'pro' };
  await tell({ kind: 'plan', ...plan, subscriptionId: 'sub_1', status: 'active', asOfS: 1, startedS: 1 });
  const paid = { ...PRICE, invoiceId: `in_${hash('sha256', name).slice(0, 8)}` };
  await tell({ kind: 'plan-paid', ...plan, ...paid });
  const claim = { kind: 'plan-claim', ...plan, ...paid, cause: 'refund' };
  for (const claimId of ['re_1', 're_2']) await tell({ ...claim, claimId, stands: true });
  await tell({ ...claim, claimId: 're_2', stands: false });
}

/** Withdrawals and payout accounts that each stop at another point of their life, and a hold that nobody ends. */
async function payOut({ name, send, id, account }: Scene): Promise<void> {
  const accountId = account('ada');
  const tell = tellerOf(send);
  const deposit = { accountId, ...PRICE, amountCents: '50000', depositId: `wire-${name}` };
  await send('DepositFunds', { ...deposit, withdrawableAt: '2026-01-01T00:00:00.000Z' });
  await send('RequestPayoutAccount', { accountId });
  await send('RecordPayoutAccount', { accountId, payoutAccountId: 'acct_1' });
  await tell({ kind: 'payout-account', accountId, payoutAccountId: 'acct_1', enabled: true, asOfS: 1 });
  await send('RequestPayoutAccount', { accountId: account('cyd') });
  await send('RequestPayoutAccount', { accountId: account('org') });
  await send('RecordPayoutAccount', { accountId: account('org'), payoutAccountId: 'acct_2' });
  await send('RequestPayoutAccount', { accountId: account('bob') });
  await send('RefusePayoutAccount', { accountId: account('bob'), reason: 'not in this country' });
  const ask = async (label: string, amountCents = '300') => {
    const withdrawal = { accountId, withdrawalId: id(`withdrawal ${label}`) };
    await send('AskWithdrawal', { ...withdrawal, amountCents, currency: 'USD' });
    return withdrawal;
  };
  await ask('too much', '9999999');
  await ask('under way');
  await send('RecordTransfer', { ...(await ask('paid')), transferId: 'tr_1' });
  const back = { ...(await ask('came back')), transferId: 'tr_2' };
  await send('RecordTransfer', back);
  await tell({ kind: 'transfer-reversed', ...back, amountCents: '120', currency: 'USD' });
  await send('CancelWithdrawal', { ...(await ask('stopped')), reason: 'asked by phone' });
  await send('FailWithdrawal', { ...(await ask('failed')), reason: 'account closed' });

  const expiresAt = '2026-01-01T00:00:00.000Z';
  const purpose = { kind: 'run', runId: 'r1', agentId: `${accountId}.bot` };
  await send('HoldFunds', { accountId, holdId: `old-${name}`, ...PRICE, purpose, expiresAt });
  await send('ExpireHolds', { accountId });
}
