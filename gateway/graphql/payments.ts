import { setTimeout as sleep } from 'node:timers/promises';
import { Inject } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Args, Context, Field, Int, Mutation, ObjectType, Query, Resolver } from '@nestjs/graphql';
import { accountById } from '../../projections/agents/query.js';
import { listPayments, payerById, paymentById } from '../../projections/payments/query.js';
import { AgonError, type Command, type CommandMeta, derivedId, type Handled } from '../../services/kernel/index.js';
import {
  AskWithdrawal,
  CancelWithdrawal,
  creditPacks,
  EndPlan,
  OFFER_CURRENCY,
  type Order,
  packNamed,
  planInForce,
  planNamed,
  plans,
  RequestCheckout,
  RequestPayoutAccount,
  RequestRefund,
  realCurrency,
} from '../../services/payments/index.js';
import { BuyCredits } from '../../services/wallet/index.js';
import { assertMayRead, metaOf, type RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS, providerIn } from '../ports.js';
import { connectionOf, Node, PAGE, type PageArgs, pageIn, toConnection } from './relay.js';
import { paymentOf } from './shown.js';
import { Receipt } from './types.js';

const WAIT_MS = 15_000;
const BEAT_MS = 10;
const text = (description?: string) => ({ type: () => String, ...(description ? { description } : {}) });

@ObjectType({ implements: () => [Node], description: 'Money on its way in (a checkout) or out (a withdrawal).' })
export class Payment extends Node {
  @Field(() => String) paymentId!: string;
  @Field(() => String) accountId!: string;
  @Field(() => String, { description: 'deposit, credits, plan or withdrawal.' }) kind!: string;
  @Field(() => String) amountCents!: string;
  @Field(() => String) currency!: string;
  @Field(() => String, {
    description:
      'requested, open, received, refund_requested, refund_refused, partly_refunded, refunded, disputed, charged_back, failed; of a withdrawal: asked, requested, stopped, refused, paid, partly_reversed, reversed, failed.',
  })
  status!: string;
  @Field(() => String, {
    description: 'What of it went back, by refunds and disputes that stand; of a withdrawal, what came back of it.',
  })
  returnedCents!: string;
  @Field(() => String, { nullable: true, description: 'Where an open checkout is paid.' }) url!: string | null;
  @Field(() => String) detail!: string;
  @Field(() => String) requestedAt!: string;
  @Field(() => String) updatedAt!: string;
}

@ObjectType()
export class PaymentConnection extends connectionOf(Payment, 'Payment') {}

@ObjectType({ description: 'A plan, and what it allows.' })
export class PlanOffer {
  @Field(() => String) planId!: string;
  @Field(() => String) title!: string;
  @Field(() => String, { description: 'Cents of US dollars a month.' }) priceCents!: string;
  @Field(() => Int) agentsMax!: number;
  @Field(() => Int) matchesPerDayMax!: number;
  @Field(() => Int) requestsPerMinuteMax!: number;
  @Field(() => Int, { description: 'A higher one is played first.' }) priority!: number;
}

@ObjectType({ description: 'Compute credits that are bought together.' })
export class CreditPackOffer {
  @Field(() => String) packId!: string;
  @Field(() => String, { description: 'In hundredths.' }) creditCents!: string;
  @Field(() => String) priceCents!: string;
}

@ObjectType({ description: 'How an owner stands: plan with its limits, and the account that withdrawals go to.' })
export class Payer {
  @Field(() => String) accountId!: string;
  @Field(() => PlanOffer, { description: 'What holds now: an ended or unpaid plan is the free one.' }) plan!: PlanOffer;
  @Field(() => String, { description: 'Of the subscription: incomplete, active, late, unpaid or ended.' })
  planStatus!: string;
  @Field(() => String, { nullable: true }) payoutAccountId!: string | null;
  @Field(() => Boolean) payoutsEnabled!: boolean;
}

@ObjectType()
export class OnboardingLink {
  @Field(() => String) accountId!: string;
  @Field(() => String, { description: 'Good for one visit, within minutes.' }) url!: string;
}

/** Paying in, paying out, and plans. Owners for themselves, staff for everybody. */
@Resolver()
export class PaymentsResolver {
  constructor(
    @Inject(PORTS) private readonly ports: GatewayPorts,
    @Inject(CommandBus) private readonly commands: CommandBus,
  ) {}

  @Query(() => [PlanOffer])
  plans() {
    return plans;
  }

  @Query(() => [CreditPackOffer])
  creditPacks() {
    return creditPacks;
  }

  @Query(() => PaymentConnection, { description: 'Newest first.' })
  async payments(
    @Args('accountId', text()) accountId: string,
    @Args(PAGE) page: PageArgs,
    @Context() context: RequestContext,
  ) {
    assertMayRead(context, accountId);
    return toConnection(await listPayments(this.ports.database, { ...pageIn(page), accountId }), paymentOf);
  }

  @Query(() => Payer)
  async payer(@Args('accountId', text()) accountId: string, @Context() context: RequestContext) {
    assertMayRead(context, accountId);
    const row = await payerById(this.ports.database, accountId);
    return { ...row, plan: planInForce(row) };
  }

  @Mutation(() => Payment, { description: 'Opens a checkout. The wallet is credited when Stripe has confirmed it.' })
  deposit(
    @Args('accountId', text()) accountId: string,
    @Args('amountCents', text()) amountCents: string,
    @Args('currency', { ...text(), defaultValue: OFFER_CURRENCY }) currency: string,
    @Context() context: RequestContext,
  ) {
    const clearingS = this.ports.depositClearingS;
    return this.checkout(context, accountId, { kind: 'deposit', amountCents, currency: real(currency), clearingS });
  }

  @Mutation(() => Payment, { description: 'Opens a checkout for a pack of compute credits.' })
  buyCredits(
    @Args('accountId', text()) accountId: string,
    @Args('packId', text()) packId: string,
    @Context() context: RequestContext,
  ) {
    const { creditCents, priceCents: amountCents } = packNamed(packId);
    return this.checkout(context, accountId, {
      kind: 'credits',
      packId,
      creditCents,
      amountCents,
      currency: OFFER_CURRENCY,
    });
  }

  @Mutation(() => Receipt, { description: 'Buys a pack of compute credits with money that is in the wallet.' })
  async buyCreditsFromWallet(
    @Args('accountId', text()) accountId: string,
    @Args('packId', text()) packId: string,
    @Context() context: RequestContext,
  ) {
    const { creditCents, priceCents: amountCents } = packNamed(packId);
    const meta = this.meta(context, 'BuyCredits');
    const paid = { amountCents, currency: OFFER_CURRENCY };
    return this.send(accountId, new BuyCredits({ accountId, packId, creditCents, paid }, meta));
  }

  @Mutation(() => Payment, { description: 'Gives a payment, or a part of it, back the way it came. For staff.' })
  async refundPayment(
    @Args('accountId', text()) accountId: string,
    @Args('paymentId', text()) paymentId: string,
    @Args('amountCents', { ...text('All that is left when left out.'), nullable: true }) amountCents:
      | string
      | undefined,
    @Args('reason', { ...text(), defaultValue: 'refund' }) reason: string,
    @Context() context: RequestContext,
  ) {
    providerIn(this.ports);
    const meta = this.meta(context, 'RequestRefund');
    const data = { accountId, paymentId, requestId: derivedId(meta.id, 'refund'), reason };
    await this.send(paymentId, new RequestRefund(amountCents == null ? data : { ...data, amountCents }, meta));
    return this.settled(paymentId, ['refund_requested']);
  }

  @Mutation(() => Payment, { description: 'Opens a checkout for a plan. For the free one, see endPlan.' })
  subscribe(
    @Args('accountId', text()) accountId: string,
    @Args('planId', text()) planId: string,
    @Context() context: RequestContext,
  ) {
    const { priceCents: amountCents } = planNamed(planId);
    if (amountCents === '0')
      throw new AgonError('PAYMENTS.FREE_PLAN', `The plan ${planId} costs nothing: end the other one.`);
    return this.checkout(context, accountId, { kind: 'plan', planId, amountCents, currency: OFFER_CURRENCY });
  }

  @Mutation(() => Receipt, { description: 'Ends the plan; the free one is what remains.' })
  endPlan(@Args('accountId', text()) accountId: string, @Context() context: RequestContext) {
    providerIn(this.ports);
    return this.send(accountId, new EndPlan({ accountId }, this.meta(context, 'EndPlan')));
  }

  @Mutation(() => OnboardingLink, { description: 'Sets up the account that withdrawals go to.' })
  async openPayoutAccount(@Args('accountId', text()) accountId: string, @Context() context: RequestContext) {
    const provider = providerIn(this.ports);
    const meta = this.meta(context, 'RequestPayoutAccount');
    await this.assertOwner(accountId);
    await this.send(accountId, new RequestPayoutAccount({ accountId }, meta));
    const payer = () => payerById(this.ports.database, accountId);
    const { payoutAccountId, payoutDetail } = await this.until(payer, (row) => row.payoutDetail !== 'requested');
    if (payoutAccountId === null)
      throw new AgonError('PAYMENTS.NO_ANSWER', `There is no payout account yet: ${payoutDetail}.`);
    return { accountId, url: await provider.onboardingUrl(payoutAccountId) };
  }

  @Mutation(() => Payment, { description: 'Pays money out to the payout account. It is held until it is paid.' })
  async withdraw(
    @Args('accountId', text()) accountId: string,
    @Args('amountCents', text()) amountCents: string,
    @Args('currency', { ...text(), defaultValue: OFFER_CURRENCY }) currency: string,
    @Context() context: RequestContext,
  ) {
    providerIn(this.ports);
    const meta = this.meta(context, 'AskWithdrawal');
    const withdrawalId = derivedId(meta.id, 'withdrawal');
    await this.send(
      withdrawalId,
      new AskWithdrawal({ accountId, withdrawalId, amountCents, currency: real(currency) }, meta),
    );
    return this.settled(withdrawalId, ['asked', 'requested']);
  }

  @Mutation(() => Payment, {
    description: 'Stops a withdrawal that is not paid yet, and gives the money back. For staff.',
  })
  async cancelWithdrawal(
    @Args('accountId', text()) accountId: string,
    @Args('withdrawalId', text()) withdrawalId: string,
    @Args('reason', { ...text(), defaultValue: 'cancelled' }) reason: string,
    @Context() context: RequestContext,
  ) {
    const meta = this.meta(context, 'CancelWithdrawal');
    await this.send(withdrawalId, new CancelWithdrawal({ accountId, withdrawalId, reason }, meta));
    return this.settled(withdrawalId, ['asked', 'requested']);
  }

  private async checkout(context: RequestContext, accountId: string, order: Order): Promise<Payment> {
    providerIn(this.ports);
    const meta = this.meta(context, 'RequestCheckout');
    await this.assertOwner(accountId);
    const paymentId = derivedId(meta.id, 'payment');
    await this.send(paymentId, new RequestCheckout({ accountId, paymentId, order }, meta));
    return this.settled(paymentId, ['requested']);
  }

  /** The row once it has left these states, or as it is when that takes too long. */
  private async settled(paymentId: string, waiting: readonly string[]): Promise<Payment> {
    const look = () => paymentById(this.ports.database, paymentId);
    const row = await this.until(look, (found) => found !== undefined && !waiting.includes(found.status));
    if (!row) throw new AgonError('PAYMENTS.UNKNOWN', `There is no payment ${paymentId} yet. Look again in a moment.`);
    return paymentOf(row);
  }

  private async until<T>(look: () => Promise<T>, good: (found: T) => boolean): Promise<T> {
    let found = await look();
    for (let waitedMs = 0; !good(found) && waitedMs < WAIT_MS; waitedMs += BEAT_MS) {
      await sleep(BEAT_MS);
      found = await look();
    }
    return found;
  }

  private meta(context: RequestContext, commandType: string): CommandMeta {
    return metaOf(this.ports, context, commandType);
  }

  private async send(id: string, command: Command): Promise<Receipt> {
    const { events, position, repeated }: Handled = await this.commands.execute(command);
    await this.ports.visible(position);
    return { id, events: events.map((event) => event.type), position, repeated };
  }

  private async assertOwner(accountId: string): Promise<void> {
    if (await accountById(this.ports.database, accountId)) return;
    throw new AgonError('ACCOUNTS.UNKNOWN', `There is no account ${accountId}. Register it first.`);
  }
}

function real(currency: string) {
  const parsed = realCurrency.safeParse(currency);
  if (parsed.success) return parsed.data;
  throw new AgonError('PAYMENTS.BAD_CURRENCY', `${currency} is not one of ${realCurrency.options.join(', ')}.`);
}
