import type { PaymentRow } from '../../projections/payments/table.js';
import { keyScopes } from '../../services/accounts/index.js';
import { memberRoles } from '../../services/kernel/index.js';
import { OFFER_CURRENCY } from '../../services/payments/index.js';
import type { RequestContext } from '../auth/actor.js';
import type { GatewayPorts } from '../ports.js';
import * as accounts from '../use-cases/accounts.js';
import { type Code, type NewAgent, submitAgent } from '../use-cases/agents.js';
import * as matches from '../use-cases/matches.js';
import * as money from '../use-cases/money.js';
import * as operations from '../use-cases/operations.js';
import { about, maybe, mutation, mutationsOf, usually } from './declare.js';
import { OnboardingLink, Payment } from './payments.js';
import { paymentOf, projectionOf } from './rows.js';
import { IssuedApiKey, Projection, Replayed } from './types.js';

const paid =
  <Data>(ask: (ports: GatewayPorts, context: RequestContext, data: Data) => Promise<PaymentRow>) =>
  async (ports: GatewayPorts, context: RequestContext, data: Data) =>
    paymentOf(await ask(ports, context, data));

/** Everything that can be asked for. */
export const Mutations = mutationsOf({
  registerOwner: mutation('Registers an owner of agents.', accounts.registerOwner, {
    accountId: String,
    displayName: String,
  }),
  registerOrganisation: mutation(
    'Registers an account that several people act for. You own it.',
    accounts.registerOrganisation,
    { accountId: String, displayName: String, founderId: about(String, 'Its first owner: yourself.') },
  ),
  joinOrganisation: mutation(
    'Agrees to act for an organisation, from when it names this account.',
    accounts.joinOrganisation,
    { accountId: about(String, 'The member: yourself.'), organisationId: String },
  ),
  setMember: mutation('Lets somebody who joins it act for an organisation, or changes as what.', accounts.setMember, {
    accountId: String,
    memberId: String,
    role: about(String, `One of ${memberRoles.join(', ')}.`),
  }),
  removeMember: mutation('Ends a membership at once; of oneself, for good.', accounts.removeMember, {
    accountId: String,
    memberId: String,
  }),
  endSessions: mutation('Signs an account out everywhere, at once.', accounts.endSessions, {
    accountId: String,
    reason: usually(String, 'asked for'),
  }),
  issueApiKey: mutation(about(IssuedApiKey, 'Makes an API key. Its text is shown this once.'), accounts.issueApiKey, {
    accountId: String,
    scopes: about([String], `Of ${keyScopes.join(', ')}.`),
    name: usually(String, ''),
    agents: maybe([String]),
  }),
  revokeApiKey: mutation('Ends a key at once. Streams that it has open are cut.', accounts.revokeApiKey, {
    accountId: String,
    keyId: String,
    reason: usually(String, 'revoked'),
  }),

  submitAgent: mutation(
    'Submits an agent, or a new version of one that exists.',
    (ports: GatewayPorts, context: RequestContext, { source, runtime, ...agent }: NewAgent & Code) =>
      submitAgent(ports, context, agent, async () => ({ source, runtime })),
    {
      ownerId: String,
      name: String,
      games: [String],
      source: about(String, 'Code that defines act(observation).'),
      runtime: usually(String, 'javascript', 'What runs it: javascript, node or python.'),
    },
  ),

  proposeMatch: mutation('Proposes a match. It is played once the stakes are in escrow.', matches.proposeMatch, {
    game: String,
    agents: about([String], 'In the order of their seats.'),
    stakeCents: usually(String, '0', 'Each seat stakes this much.'),
    seed: maybe(String, 'Chance and agents draw from it.'),
    currency: usually(String, 'PLAY', 'Of the stakes and the bounty.'),
    bountyCents: maybe(String, 'A prize beside the pot.'),
    sponsorId: maybe(String, 'Whose wallet the bounty comes from.'),
  }),
  voidMatch: mutation('Calls off a match that is not settled, and gives the stakes back.', matches.voidMatch, {
    matchId: String,
    detail: about(String, 'Why.'),
  }),
  reverseMatch: mutation(
    'Undoes a settled match: every stake goes back, and what was won is taken back.',
    matches.reverseMatch,
    { matchId: String, reason: about(String, 'Why.') },
  ),

  grantCredits: mutation('Grants play credits.', money.grantCredits, {
    accountId: String,
    amountCents: String,
    reason: usually(String, 'grant'),
  }),
  freezeWallet: mutation('Stops or allows withdrawals from a wallet. Play goes on.', money.freezeWallet, {
    accountId: String,
    frozen: Boolean,
    reason: about(String, 'Why.'),
  }),
  setBudget: mutation(
    'Caps what a wallet, or one of its agents, may spend. A cap left out is lifted.',
    money.setBudget,
    {
      accountId: String,
      currency: usually(String, 'COMPUTE'),
      agentId: maybe(String),
      perRunCents: maybe(String),
      perDayCents: maybe(String),
      totalCents: maybe(String),
    },
  ),
  deposit: mutation(
    about(Payment, 'Opens a checkout. The wallet is credited when Stripe has confirmed it.'),
    paid(money.deposit),
    { accountId: String, amountCents: String, currency: usually(String, OFFER_CURRENCY) },
  ),
  buyCredits: mutation(about(Payment, 'Opens a checkout for a pack of compute credits.'), paid(money.buyCredits), {
    accountId: String,
    packId: String,
  }),
  buyCreditsFromWallet: mutation(
    'Buys a pack of compute credits with money that is in the wallet.',
    money.buyCreditsFromWallet,
    { accountId: String, packId: String },
  ),
  refundPayment: mutation(
    about(Payment, 'Gives a payment, or a part of it, back the way it came. For staff.'),
    paid(money.refundPayment),
    {
      accountId: String,
      paymentId: String,
      amountCents: maybe(String, 'All that is left when left out.'),
      reason: usually(String, 'refund'),
    },
  ),
  subscribe: mutation(
    about(Payment, 'Opens a checkout for a plan. For the free one, see endPlan.'),
    paid(money.subscribe),
    { accountId: String, planId: String },
  ),
  endPlan: mutation('Ends the plan; the free one is what remains.', money.endPlan, { accountId: String }),
  openPayoutAccount: mutation(
    about(OnboardingLink, 'Sets up the account that withdrawals go to.'),
    money.openPayoutAccount,
    { accountId: String },
  ),
  withdraw: mutation(
    about(Payment, 'Pays money out to the payout account. It is held until it is paid.'),
    paid(money.withdraw),
    { accountId: String, amountCents: String, currency: usually(String, OFFER_CURRENCY) },
  ),
  cancelWithdrawal: mutation(
    about(Payment, 'Stops a withdrawal that is not paid yet, and gives the money back. For staff.'),
    paid(money.cancelWithdrawal),
    { accountId: String, withdrawalId: String, reason: usually(String, 'cancelled') },
  ),

  revokeRunner: mutation("Ends the trust in a runner's key, for good.", operations.revokeRunner, {
    runnerId: String,
    reason: about(String, 'Why.'),
  }),
  rotateSigningKey: mutation(
    about(String, 'Signs access tokens with a new key from now on; its kid. For staff.'),
    operations.rotateSigningKey,
    {},
  ),
  replayBusLetters: mutation(
    about(Replayed, 'Hands dead letters to their policies again.'),
    operations.replayBusLetters,
    { group: maybe(String), eventId: maybe(String) },
  ),
  rebuildProjection: mutation(
    about(Projection, 'Builds a view anew beside the one that serves, then swaps them.'),
    async (ports, context, data: { view: string }) =>
      projectionOf(await operations.rebuildProjection(ports, context, data)),
    { view: String },
  ),
});
