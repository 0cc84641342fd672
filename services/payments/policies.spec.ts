import { describe, expect, it } from 'vitest';
import { chain } from '../kernel/fixtures.js';
import { derivedId, type RecordedEvent } from '../kernel/index.js';
import type { Order, PaymentEvent } from './index.js';
import { paidIn, withdrawals } from './policies.js';

const accountId = 'ada';
const paymentId = derivedId('payment');
const withdrawalId = derivedId('withdrawal');
const money = { amountCents: '5000', currency: 'USD' } as const;
const deposit: Order = { kind: 'deposit', ...money, clearingS: 3600 };
const pack: Order = { kind: 'credits', ...money, packId: 'medium', creditCents: '12001' };
const plan: Order = { kind: 'plan', ...money, planId: 'pro' };

const recorded = (type: string, data: unknown): RecordedEvent => {
  const [event] = chain('payments-ada', 1);
  return { ...(event as RecordedEvent), type, data, time: '2026-03-01T12:00:00.000Z', position: 1 };
};
const sent = (policy: typeof paidIn, type: string, data: unknown) =>
  policy.react(recorded(type, data)).map((command) => [command.type, command.data]);
const onPaid = (type: PaymentEvent['type'], data: object) =>
  sent(paidIn, type, { accountId, paymentId, ...money, order: deposit, ...data });

describe('what is paid in', () => {
  it('is deposited, and can be withdrawn when it has cleared', () => {
    const withdrawableAt = '2026-03-01T13:00:00.000Z';
    expect(onPaid('PaymentReceived', {})).toEqual([
      ['DepositFunds', { accountId, depositId: paymentId, ...money, withdrawableAt }],
    ]);
  });

  it('is credits for what was paid for credits, and nothing for a plan', () => {
    const bought = { accountId, depositId: paymentId, amountCents: '12001', currency: 'COMPUTE', paid: money };
    expect(onPaid('PaymentReceived', { order: pack })).toEqual([['DepositFunds', bought]]);
    expect(onPaid('PaymentReceived', { order: plan })).toEqual([]);
  });

  it('is taken back deposit by deposit, credits by their share', () => {
    const taken = [
      { depositId: 'a', amountCents: '2000' },
      { depositId: 'b', amountCents: '1' },
    ];
    expect(onPaid('PaymentRefunded', { refundId: 're_1', order: pack, taken })).toMatchObject([
      [
        'ClawBackFunds',
        { depositId: 'a', clawBackId: 're_1', reason: 'refund', amountCents: '4800', currency: 'COMPUTE' },
      ],
      ['ClawBackFunds', { depositId: 'b', clawBackId: 're_1', amountCents: '2', paid: { amountCents: '1' } }],
    ]);
  });

  it('is taken back and the wallet frozen by a dispute, and both undone when it is won', () => {
    const dispute = { disputeId: 'dp_1', taken: [{ depositId: paymentId, amountCents: '5000' }] };
    expect(onPaid('DisputeOpened', dispute)).toMatchObject([
      ['FreezeWallet', { accountId, disputeId: 'dp_1', reason: 'dispute dp_1' }],
      ['ClawBackFunds', { clawBackId: 'dp_1', reason: 'chargeback', ...money }],
    ]);
    const won = { disputeId: 'dp_1', depositId: 'dp_1:won', returnedCents: '5000' };
    expect(onPaid('DisputeWon', won)).toMatchObject([
      ['DepositFunds', { depositId: 'dp_1:won', ...money }],
      ['UnfreezeWallet', { accountId, disputeId: 'dp_1' }],
    ]);
    expect(onPaid('DisputeLost', { disputeId: 'dp_1' })).toMatchObject([['UnfreezeWallet', { disputeId: 'dp_1' }]]);
  });
});

describe('a withdrawal', () => {
  const holdId = `withdrawal:${withdrawalId}`;
  const asked = { accountId, withdrawalId, ...money };
  const purpose = { kind: 'withdrawal', withdrawalId };

  it('is held, then approved or refused, then posted or given back', () => {
    expect(sent(withdrawals, 'WithdrawalAsked', asked)).toEqual([
      ['HoldFunds', { accountId, holdId, ...money, purpose }],
    ]);
    expect(sent(withdrawals, 'FundsHeld', { accountId, holdId, ...money, purpose })).toEqual([
      ['ApproveWithdrawal', { accountId, withdrawalId }],
    ]);
    const refusal = { accountId, holdId, ...money, purpose, reason: 'frozen', availableCents: '0' };
    expect(sent(withdrawals, 'HoldRefused', refusal)).toEqual([
      ['RefuseWithdrawal', { accountId, withdrawalId, reason: 'frozen', availableCents: '0' }],
    ]);
    expect(sent(withdrawals, 'WithdrawalPaid', { ...asked, transferId: 'tr_1' })).toEqual([
      ['PostHold', { accountId, holdId, payoutCents: '0' }],
    ]);
    expect(sent(withdrawals, 'WithdrawalFailed', { ...asked, reason: 'no' })).toEqual([
      ['VoidHold', { accountId, holdId }],
    ]);
  });

  it('is in the wallet again when its transfer was reversed, and can be withdrawn again', () => {
    const reversal = { ...asked, amountCents: '1500', transferId: 'tr_1', totalCents: '2500' };
    const again = { accountId, depositId: 'tr_1:reversed:2500', amountCents: '1500', currency: 'USD' };
    expect(sent(withdrawals, 'WithdrawalReversed', reversal)).toEqual([
      ['DepositFunds', { ...again, withdrawableAt: '2026-03-01T12:00:00.000Z' }],
    ]);
  });

  it('leaves the stakes of matches alone', () => {
    const stake = { kind: 'match', matchId: paymentId, seat: 0 };
    expect(sent(withdrawals, 'FundsHeld', { accountId, holdId: 'h', ...money, purpose: stake })).toEqual([]);
  });
});
