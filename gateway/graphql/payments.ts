import { Int } from '@nestjs/graphql';
import { listPayments, payerById } from '../../projections/payments/query.js';
import { creditPacks, planInForce, plans } from '../../services/payments/index.js';
import { assertMayRead } from '../auth/actor.js';
import { about, maybe, objectType, queriesOf, query } from './declare.js';
import { connectionOf, nodeType, PAGE, toConnection } from './relay.js';
import { paymentOf } from './rows.js';

export const Payment = nodeType('Payment', 'Money on its way in (a checkout) or out (a withdrawal).', {
  paymentId: String,
  accountId: String,
  kind: about(String, 'deposit, credits, plan or withdrawal.'),
  amountCents: String,
  currency: String,
  status: about(
    String,
    'requested, open, received, refund_requested, refund_refused, partly_refunded, refunded, disputed, charged_back, failed; of a withdrawal: asked, requested, stopped, refused, paid, partly_reversed, reversed, failed.',
  ),
  returnedCents: about(
    String,
    'What of it went back, by refunds and disputes that stand; of a withdrawal, what came back of it.',
  ),
  url: maybe(String, 'Where an open checkout is paid.'),
  detail: String,
  requestedAt: String,
  updatedAt: String,
});

const PlanOffer = objectType('PlanOffer', 'A plan, and what it allows.', {
  planId: String,
  title: String,
  priceCents: about(String, 'Cents of US dollars a month.'),
  agentsMax: Int,
  matchesPerDayMax: Int,
  requestsPerMinuteMax: Int,
  priority: about(Int, 'A higher one is played first.'),
});

const CreditPackOffer = objectType('CreditPackOffer', 'Compute credits that are bought together.', {
  packId: String,
  creditCents: about(String, 'In hundredths.'),
  priceCents: String,
});

const Payer = objectType(
  'Payer',
  'How an owner stands: plan with its limits, and the account that withdrawals go to.',
  {
    accountId: String,
    plan: about(PlanOffer, 'What holds now: an ended or unpaid plan is the free one.'),
    planStatus: about(String, 'Of the subscription: incomplete, active, late, unpaid or ended.'),
    payoutAccountId: maybe(String),
    payoutsEnabled: Boolean,
  },
);

export const OnboardingLink = objectType('OnboardingLink', '', {
  accountId: String,
  url: about(String, 'Good for one visit, within minutes.'),
});

/** Paying in, paying out, and plans. Owners for themselves, staff for everybody. */
export const Payments = queriesOf({
  plans: query({ type: [PlanOffer], resolve: () => plans }),
  creditPacks: query({ type: [CreditPackOffer], resolve: () => creditPacks }),
  payments: query({
    type: about(connectionOf(Payment), 'Newest first.'),
    args: { accountId: String, ...PAGE },
    resolve: async ({ ports, args, context }) => {
      assertMayRead(context, args.accountId);
      return toConnection(await listPayments(ports.database, args), paymentOf);
    },
  }),
  payer: query({
    type: Payer,
    args: { accountId: String },
    resolve: async ({ ports, args: { accountId }, context }) => {
      assertMayRead(context, accountId);
      const row = await payerById(ports.database, accountId);
      return { ...row, plan: planInForce(row) };
    },
  }),
});
