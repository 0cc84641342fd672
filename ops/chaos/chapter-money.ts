import { hash } from 'node:crypto';
import type { Data, Scene } from './chapters.js';

const PRICE = { amountCents: '5000', currency: 'USD' } as const;

/** Payments that each stop at another point of their life. */
export async function payIn({ name, send, id, account }: Scene): Promise<void> {
  const accountId = account('bob');
  const checkout = async (label: string, until: 'requested' | 'open' | 'paid', owner = accountId) => {
    const payment = { accountId: owner, paymentId: id(label) };
    await send('RequestCheckout', { ...payment, order: { kind: 'deposit', ...PRICE, clearingS: 0 } });
    if (until === 'requested') return payment;
    await send('RecordCheckout', { ...payment, sessionId: 'cs_1', url: 'https://pay.example/1' });
    if (until === 'paid') await tell({ kind: 'paid', ...payment, ...PRICE, chargeId: 'pi_1' });
    return payment;
  };
  const tell = (notice: Data) => send('TakeNotice', { accountId: notice.accountId, notice });
  await checkout('requested', 'requested');
  await checkout('opened', 'open');
  await send('FailCheckout', { ...(await checkout('failed', 'requested')), reason: 'card refused' });
  await checkout('received', 'paid');
  const asked = { ...(await checkout('asked back', 'paid')), requestId: id('asked') };
  await send('RequestRefund', { ...asked, reason: 'asked for' });
  const refused = { ...(await checkout('kept', 'paid')), requestId: id('refused') };
  await send('RequestRefund', { ...refused, reason: 'asked for' });
  await send('RefuseRefund', { ...refused, reason: 'too old' });
  const refund = (payment: Data, failed: boolean) => {
    return tell({
      kind: 'refund',
      ...payment,
      ...PRICE,
      refundId: `re_${payment.paymentId}`.replaceAll('-', ''),
      failed,
    });
  };
  await refund(await checkout('refunded', 'paid'), false);
  const returned = await checkout('refund failed', 'paid');
  await refund(returned, false);
  await refund(returned, true);
  const dispute = (payment: Data, outcome: string) => {
    return tell({
      kind: 'dispute',
      ...payment,
      ...PRICE,
      disputeId: `dp_${payment.paymentId}`.replaceAll('-', ''),
      outcome,
    });
  };
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
export async function payOut({ name, send, id, account }: Scene): Promise<void> {
  const accountId = account('ada');
  const tell = (notice: Data) => send('TakeNotice', { accountId: notice.accountId, notice });
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
