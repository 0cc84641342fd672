import { Inject } from '@nestjs/common';
import { Args, Extensions, Query, Resolver } from '@nestjs/graphql';
import { agentById } from '../../projections/agents/query.js';
import { ledgerSums, statementOf, trialBalance } from '../../projections/balances/query.js';
import { AgonError, newMeta, SYSTEM } from '../../services/kernel/index.js';
import { afford, pursesOf, type WalletState } from '../../services/wallet/index.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { connection, FIRST, TEXT } from './queries.js';
import { SeatCost, Statement, TrialBalance, Wallet } from './types.js';

const AGENTS = { type: () => [String], description: 'In the order of their seats.' } as const;
const CURRENCY = { type: () => String, defaultValue: 'PLAY' } as const;

/** What there is to know about money. Wallets come from their own events, the ledger from the read model. */
@Resolver()
export class Money {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Query(() => Wallet)
  async wallet(@Args('accountId', { type: () => String }) accountId: string): Promise<Wallet> {
    const state = await this.ports.walletOf(accountId);
    const purses = pursesOf(state, this.ports.clock()).map(({ currency, ...cents }) => ({ currency, ...texts(cents) }));
    const budgets = state.budgets.map(({ currency, agentId = null, ...budget }) => ({
      currency,
      agentId,
      perRunCents: budget.perRunCents?.toString() ?? null,
      perDayCents: budget.perDayCents?.toString() ?? null,
      totalCents: budget.totalCents?.toString() ?? null,
      spentCents: budget.spentCents.toString(),
    }));
    return { accountId, purses, frozen: state.freezes.length > 0, budgets };
  }

  @Query(() => Statement, { description: "What happened to a player's money, oldest first." })
  async statement(
    @Args('accountId', { type: () => String }) accountId: string,
    @Args('currency', CURRENCY) currency: string,
    @Args('first', FIRST) first?: number,
    @Args('after', TEXT) after?: string,
  ) {
    const page = await statementOf(this.ports.database, { accountId, currency, first, after });
    const rows = page.rows.map((row) => ({
      ...row,
      ...texts({ position: row.position, amountCents: row.amountCents }),
    }));
    return connection({ ...page, rows });
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
  ): Promise<SeatCost[]> {
    const { computeCents, clock } = this.ports;
    const wallets = new Map<string, WalletState>();
    const costs: SeatCost[] = [];
    for (const agentId of agents) {
      const agent = await agentById(this.ports.database, agentId);
      if (!agent) throw new AgonError('AGENTS.UNKNOWN', `There is no agent ${agentId}.`);
      const { ownerId: accountId } = agent;
      const before = wallets.get(accountId) ?? (await this.ports.walletOf(accountId));
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
