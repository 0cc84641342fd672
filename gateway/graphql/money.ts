import { Inject } from '@nestjs/common';
import { Args, Context, Extensions, Query, Resolver } from '@nestjs/graphql';
import { agentsById } from '../../projections/agents/query.js';
import { ledgerSums, statementOf, trialBalance } from '../../projections/balances/query.js';
import { AgonError, newMeta, ownerOf, SYSTEM } from '../../services/kernel/index.js';
import { afford, pursesOf, spentOn, type WalletState, wallet } from '../../services/wallet/index.js';
import { assertMayRead, type RequestContext } from '../auth/actor.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { PAGE, type PageArgs, pageIn, toConnection } from './relay.js';
import { PostingConnection, SeatCost, TrialBalance, Wallet } from './types.js';

const AGENTS = { type: () => [String], description: 'In the order of their seats.' } as const;
const CURRENCY = { type: () => String, defaultValue: 'PLAY' } as const;

/** What there is to know about money. Wallets come from their own events, the ledger from the read model. */
@Resolver()
export class Money {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Query(() => Wallet)
  async wallet(
    @Args('accountId', { type: () => String }) accountId: string,
    @Context() context: RequestContext,
  ): Promise<Wallet> {
    assertMayRead(context, accountId);
    const { state } = await this.ports.load(wallet, accountId, 'tail');
    const purses = pursesOf(state, this.ports.clock()).map(({ currency, ...cents }) => ({ currency, ...texts(cents) }));
    const budgets = state.budgets.map(({ currency, agentId = null, ...budget }) => ({
      currency,
      agentId,
      perRunCents: budget.perRunCents?.toString() ?? null,
      perDayCents: budget.perDayCents?.toString() ?? null,
      totalCents: budget.totalCents?.toString() ?? null,
      spentCents: budget.spentCents.toString(),
      spentTodayCents: spentOn(budget, this.ports.clock().slice(0, 10)).toString(),
    }));
    return { accountId, purses, frozen: state.freezes.length > 0, budgets };
  }

  @Query(() => PostingConnection, { description: "What happened to a player's money, oldest first." })
  async statement(
    @Args('accountId', { type: () => String }) accountId: string,
    @Args('currency', CURRENCY) currency: string,
    @Context() context: RequestContext,
    @Args(PAGE) page: PageArgs,
  ) {
    assertMayRead(context, accountId);
    const found = await statementOf(this.ports.database, { ...pageIn(page), accountId, currency });
    return toConnection(found, (row) => ({
      ...row,
      ...texts({ position: row.position, amountCents: row.amountCents }),
    }));
  }

  @Extensions({ cost: 500 })
  @Query(() => [TrialBalance])
  async trialBalance(): Promise<TrialBalance[]> {
    const rows = await trialBalance(this.ports.database);
    return Object.entries(ledgerSums(rows)).map(([currency, sum]) => ({
      currency,
      sumCents: sum.toString(),
      accounts: rows
        .filter((row) => row.currency === currency)
        .map((row) => ({ ...row, balanceCents: row.balanceCents.toString() })),
    }));
  }

  @Query(() => [SeatCost], { description: 'What a match would cost its seats. Nothing is held by asking.' })
  async estimateMatch(
    @Args('agents', AGENTS) agents: string[],
    @Args('stakeCents', { type: () => String, defaultValue: '0' }) stakeCents: string,
    @Args('currency', CURRENCY) currency: string,
    @Context() context: RequestContext,
  ): Promise<SeatCost[]> {
    // Why somebody could not pay is theirs to know.
    for (const agentId of agents) assertMayRead(context, ownerOf(agentId));
    const { computeCents, clock } = this.ports;
    const wallets = new Map<string, WalletState>();
    const known = await agentsById(this.ports.database, agents);
    const costs: SeatCost[] = [];
    for (const agentId of agents) {
      if (!known.some((each) => each.agentId === agentId))
        throw new AgonError('AGENTS.UNKNOWN', `There is no agent ${agentId}.`);
      const accountId = ownerOf(agentId);
      const before = wallets.get(accountId) ?? (await this.ports.load(wallet, accountId, 'tail')).state;
      const cost = { agentId, stakeCents, currency, computeCents };
      const { state, refusal } = afford(before, accountId, cost, newMeta(SYSTEM, { id: agentId, clock }));
      wallets.set(accountId, state);
      costs.push({ ...cost, accountId, refusal });
    }
    return costs;
  }
}

const texts = <Keys extends string>(amounts: Record<Keys, bigint>) =>
  Object.fromEntries(Object.entries<bigint>(amounts).map(([name, value]) => [name, value.toString()])) as Record<
    Keys,
    string
  >;
