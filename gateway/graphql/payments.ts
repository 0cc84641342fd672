import { Inject } from '@nestjs/common';
import { Args, Context, Field, Int, ObjectType, Query, Resolver } from '@nestjs/graphql';
import { listPayments, payerById } from '../../projections/payments/query.js';
import { creditPacks, planInForce, plans } from '../../services/payments/index.js';
import { assertMayRead, type RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { connectionOf, Node, PAGE, type PageArgs, pageIn, toConnection } from './relay.js';
import { paymentOf } from './rows.js';

const TEXT = { type: () => String } as const;

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
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

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
    @Args('accountId', TEXT) accountId: string,
    @Args(PAGE) page: PageArgs,
    @Context() context: RequestContext,
  ) {
    assertMayRead(context, accountId);
    return toConnection(await listPayments(this.ports.database, { ...pageIn(page), accountId }), paymentOf);
  }

  @Query(() => Payer)
  async payer(@Args('accountId', TEXT) accountId: string, @Context() context: RequestContext) {
    assertMayRead(context, accountId);
    const row = await payerById(this.ports.database, accountId);
    return { ...row, plan: planInForce(row) };
  }
}
