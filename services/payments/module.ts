import { defineContext } from '../kernel/index.js';
import {
  ApproveWithdrawal,
  AskWithdrawal,
  CancelWithdrawal,
  EndPlan,
  FailCheckout,
  FailWithdrawal,
  RecordCheckout,
  RecordPayoutAccount,
  RecordRefund,
  RecordTransfer,
  RefusePayoutAccount,
  RefuseRefund,
  RefuseWithdrawal,
  RequestCheckout,
  RequestPayoutAccount,
  RequestRefund,
  TakeNotice,
} from './commands.js';
import { paymentDecider } from './decider.js';
import { paymentEvents } from './events.js';
import { paidIn, withdrawals } from './policies.js';

export const payments = defineContext({
  name: 'payments',
  streams: 'payments',
  events: paymentEvents,
  decider: paymentDecider,
  commands: [
    RequestCheckout,
    RecordCheckout,
    FailCheckout,
    TakeNotice,
    EndPlan,
    RequestRefund,
    RecordRefund,
    RefuseRefund,
    RequestPayoutAccount,
    RecordPayoutAccount,
    RefusePayoutAccount,
    AskWithdrawal,
    ApproveWithdrawal,
    RefuseWithdrawal,
    RecordTransfer,
    CancelWithdrawal,
    FailWithdrawal,
  ],
  policies: [paidIn, withdrawals],
});
