export {
  AskWithdrawal,
  CancelWithdrawal,
  EndPlan,
  RecordTransfer,
  RequestCheckout,
  RequestPayoutAccount,
  RequestRefund,
  TakeNotice,
} from './commands.js';
export {
  type Notice,
  type Order,
  type PaymentEvent,
  paymentEvents,
  type RealCurrency,
  realCurrency,
} from './events.js';
export { takeWebhook, WEBHOOK_BYTES_MAX } from './incoming.js';
export { payments } from './module.js';
export {
  beyondPlan,
  type CreditPack,
  creditPacks,
  OFFER_CURRENCY,
  type Plan,
  type PlanLimit,
  packNamed,
  planInForce,
  planNamed,
  plans,
} from './offers.js';
export { carryOut, outgoingTypes } from './outgoing.js';
export type { CheckoutOrder, PaymentProvider, RefundOrder, TransferOrder } from './provider.js';
