import { agentsById } from '../../projections/agents/query.js';
import { ledgerSums, statementOf, trialBalance } from '../../projections/balances/query.js';
import { AgonError, newMeta, ownerOf, SYSTEM } from '../../services/kernel/index.js';
import { afford, pursesOf, spentOn, type WalletState, wallet } from '../../services/wallet/index.js';
import { assertMayRead } from '../auth/actor.js';
import { about, queriesOf, query, usually } from './declare.js';
import { connectionOf, PAGE, toConnection } from './relay.js';
import { Posting, SeatCost, TrialBalance, Wallet } from './types.js';

const CURRENCY = usually(String, 'PLAY');

/** What there is to know about money. Wallets come from their own events, the ledger from the read model. */
export const Money = queriesOf({
  wallet: query({
    type: Wallet,
    args: { accountId: String },
    resolve: async ({ ports, args: { accountId }, context }): Promise<InstanceType<typeof Wallet>> => {
      assertMayRead(context, accountId);
      const { state } = await ports.load(wallet, accountId, 'tail');
      const purses = pursesOf(state, ports.clock()).map(({ currency, ...cents }) => ({ currency, ...texts(cents) }));
      const budgets = state.budgets.map(({ currency, agentId = null, ...budget }) => ({
        currency,
        agentId,
        perRunCents: budget.perRunCents?.toString() ?? null,
        perDayCents: budget.perDayCents?.toString() ?? null,
        totalCents: budget.totalCents?.toString() ?? null,
        spentCents: budget.spentCents.toString(),
        spentTodayCents: spentOn(budget, ports.clock().slice(0, 10)).toString(),
      }));
      return { accountId, purses, frozen: state.freezes.length > 0, budgets };
    },
  }),
  statement: query({
    type: about(connectionOf(Posting), "What happened to a player's money, oldest first."),
    args: { accountId: String, currency: CURRENCY, ...PAGE },
    resolve: async ({ ports, args: { accountId, currency, ...page }, context }) => {
      assertMayRead(context, accountId);
      const found = await statementOf(ports.database, { ...page, accountId, currency });
      return toConnection(found, ({ position, amountCents, ...row }) => ({
        ...row,
        ...texts({ position, amountCents }),
      }));
    },
  }),
  trialBalance: query({
    type: [TrialBalance],
    cost: 500,
    resolve: async ({ ports }): Promise<InstanceType<typeof TrialBalance>[]> => {
      const rows = await trialBalance(ports.database);
      return Object.entries(ledgerSums(rows)).map(([currency, sum]) => ({
        currency,
        sumCents: sum.toString(),
        accounts: rows
          .filter((row) => row.currency === currency)
          .map((row) => ({ ...row, balanceCents: row.balanceCents.toString() })),
      }));
    },
  }),
  estimateMatch: query({
    type: about([SeatCost], 'What a match would cost its seats. Nothing is held by asking.'),
    args: {
      agents: about([String], 'In the order of their seats.'),
      stakeCents: usually(String, '0'),
      currency: CURRENCY,
    },
    resolve: async ({ ports, args, context }): Promise<InstanceType<typeof SeatCost>[]> => {
      const { agents, stakeCents, currency } = args;
      // Why somebody could not pay is theirs to know.
      for (const agentId of agents) assertMayRead(context, ownerOf(agentId));
      const { computeCents, clock } = ports;
      const wallets = new Map<string, WalletState>();
      const known = await agentsById(ports.database, agents);
      const costs: InstanceType<typeof SeatCost>[] = [];
      for (const agentId of agents) {
        if (!known.some((each) => each.agentId === agentId))
          throw new AgonError('AGENTS.UNKNOWN', `There is no agent ${agentId}.`);
        const accountId = ownerOf(agentId);
        const before = wallets.get(accountId) ?? (await ports.load(wallet, accountId, 'tail')).state;
        const cost = { agentId, stakeCents, currency, computeCents };
        const { state, refusal } = afford(before, accountId, cost, newMeta(SYSTEM, { id: agentId, clock }));
        wallets.set(accountId, state);
        costs.push({ ...cost, accountId, refusal });
      }
      return costs;
    },
  }),
});

const texts = <Keys extends string>(amounts: Record<Keys, bigint>) =>
  Object.fromEntries(Object.entries<bigint>(amounts).map(([name, value]) => [name, value.toString()])) as Record<
    Keys,
    string
  >;
