import {
  AgonError,
  type Clock,
  type Command,
  derivedId,
  isAgonError,
  type Load,
  newMeta,
  type RecordedEvent,
  SYSTEM,
} from '../kernel/index.js';
import { wallet, withheld } from '../wallet/index.js';
import {
  CancelWithdrawal,
  FailCheckout,
  FailWithdrawal,
  RecordCheckout,
  RecordPayoutAccount,
  RecordRefund,
  RecordTransfer,
  RefusePayoutAccount,
  RefuseRefund,
} from './commands.js';
import type { PaymentEvent } from './events.js';
import { payments } from './index.js';
import type { PaymentProvider } from './provider.js';
import { isDisputed } from './state.js';

/** The facts after which the provider has to be called. */
export const outgoingTypes = [
  'CheckoutRequested',
  'PayoutAccountRequested',
  'WithdrawalRequested',
  'WithdrawalStopped',
  'RefundRequested',
  'PlanEndRequested',
] as const satisfies readonly PaymentEvent['type'][];

type Outgoing = Extract<PaymentEvent, { type: (typeof outgoingTypes)[number] }> &
  Pick<RecordedEvent, 'id' | 'time'> &
  Partial<Pick<RecordedEvent, 'meta'>>;

interface OutgoingPorts {
  readonly provider: PaymentProvider;
  readonly load: Load;
  readonly clock: Clock;
}

/**
 * Makes the call that an event asks for, and says what is to be recorded of it. It may run any number of times for one
 * event, before and after a crash: what is recorded already is left alone, and what may have been paid is looked up.
 */
export async function carryOut(event: Outgoing, ports: OutgoingPorts): Promise<Command | undefined> {
  const { provider, clock, load } = ports;
  // The answer is part of the id: an answer that differs is another command, and not the same one with other data.
  const { correlationId } = event.meta ?? {};
  const cause = correlationId === undefined ? undefined : { correlationId, causationId: event.id };
  const meta = (answer: string) => newMeta(SYSTEM, { id: derivedId(event.id, 'outgoing', answer), clock, cause });
  const { state } = await load(payments, event.data.accountId, 'tail');
  switch (event.type) {
    case 'CheckoutRequested': {
      const { accountId, paymentId } = event.data;
      if (state.payments[paymentId]?.status !== 'requested') return undefined;
      return refusedAs(
        (reason) => new FailCheckout({ accountId, paymentId, reason }, meta('refused')),
        async () => {
          const opened = await provider.openCheckout(event.data);
          return new RecordCheckout({ accountId, paymentId, ...opened }, meta(opened.sessionId));
        },
      );
    }
    case 'PayoutAccountRequested': {
      const { accountId } = event.data;
      if (!state.payout || state.payout.id) return undefined;
      return refusedAs(
        (reason) => new RefusePayoutAccount({ accountId, reason }, meta('refused')),
        async () => {
          const { payoutAccountId } = await provider.openPayoutAccount(accountId, `agon-payout-account-${event.id}`);
          return new RecordPayoutAccount({ accountId, payoutAccountId }, meta(payoutAccountId));
        },
      );
    }
    case 'WithdrawalRequested': {
      const { accountId, withdrawalId } = event.data;
      if (state.withdrawals[withdrawalId]?.status !== 'requested') return undefined;
      const record = ({ transferId }: { transferId: string }) =>
        new RecordTransfer({ accountId, withdrawalId, transferId }, meta(transferId));
      // A process may have died between the call and its record. The provider forgets keys; it keeps its transfers.
      // A look-up that fails says nothing about the transfer, so it never ends the withdrawal.
      const paid = await provider.findTransfer(withdrawalId);
      if (paid) return record(paid);
      // Weeks may have gone by since the money was held. What stops a withdrawal stops it until the moment it is paid.
      const { state: now } = await load(payments, accountId, 'tail');
      if (now.withdrawals[withdrawalId]?.status !== 'requested') return undefined;
      const why = isDisputed(now) ? 'disputed' : withheld((await load(wallet, accountId, 'tail')).state);
      if (why) return new CancelWithdrawal({ accountId, withdrawalId, reason: why }, meta('withheld'));
      return refusedAs(
        (reason) => new FailWithdrawal({ accountId, withdrawalId, reason }, meta('refused')),
        async () => record(await provider.createTransfer(event.data)),
      );
    }
    case 'WithdrawalStopped': {
      const { accountId, withdrawalId, reason } = event.data;
      if (state.withdrawals[withdrawalId]?.status !== 'stopped') return undefined;
      // A transfer may have been begun just before. Only a look-up after its time says that there will be none.
      const isOver = Date.parse(clock()) >= Date.parse(event.time) + provider.callMsMax;
      const paid = await provider.findTransfer(withdrawalId);
      if (paid) return new RecordTransfer({ accountId, withdrawalId, ...paid }, meta(paid.transferId));
      if (!isOver) {
        throw new AgonError('PAYMENTS.NO_ANSWER', `A transfer of withdrawal ${withdrawalId} may still turn up.`);
      }
      return new FailWithdrawal({ accountId, withdrawalId, reason }, meta('stopped'));
    }
    case 'RefundRequested': {
      const { accountId, paymentId, requestId } = event.data;
      if (state.payments[paymentId]?.asked[requestId]?.status !== 'requested') return undefined;
      const asked = { accountId, paymentId, requestId };
      const record = ({ refundId }: { refundId: string }) => new RecordRefund({ ...asked, refundId }, meta(refundId));
      const made = await provider.findRefund(event.data);
      if (made) return record(made);
      return refusedAs(
        (reason) => new RefuseRefund({ ...asked, reason }, meta('refused')),
        async () => record(await provider.createRefund(event.data)),
      );
    }
    case 'PlanEndRequested':
      // Recorded by the webhook that follows.
      if (state.subscriptions[event.data.subscriptionId]?.status !== 'ended')
        await provider.endPlan(event.data.subscriptionId);
      return undefined;
  }
}

/** Only a refusal that is certain ends a payment; anything else is thrown, and tried again. */
async function refusedAs(refused: (reason: string) => Command, call: () => Promise<Command>): Promise<Command> {
  try {
    return await call();
  } catch (error) {
    if (!isAgonError(error, 'PAYMENTS.PROVIDER_REFUSED')) throw error;
    return refused(error.message.slice(0, 400));
  }
}
