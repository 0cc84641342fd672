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
import { IssuedApiKey } from './api-keys.js';
import { mutation, resolverOf } from './mutation.js';
import { OnboardingLink, Payment } from './payments.js';
import { paymentOf, projectionOf } from './rows.js';
import { Projection, Replayed } from './types.js';

const TEXT = { type: () => String } as const;
const TEXTS = { type: () => [String] as [StringConstructor] } as const;
const MAYBE = { ...TEXT, nullable: true } as const;
const text = (description: string) => ({ ...TEXT, description });
const maybe = (description: string) => ({ ...MAYBE, description });
const usually = (defaultValue: string, description?: string) => ({
  ...TEXT,
  defaultValue,
  ...(description ? { description } : {}),
});

const paid =
  <Data>(ask: (ports: GatewayPorts, context: RequestContext, data: Data) => Promise<PaymentRow>) =>
  async (ports: GatewayPorts, context: RequestContext, data: Data) =>
    paymentOf(await ask(ports, context, data));
const aPayment = () => Payment;

/** Everything that can be asked for. */
export const Mutations = resolverOf({
  registerOwner: mutation('Registers an owner of agents.', accounts.registerOwner, {
    accountId: TEXT,
    displayName: TEXT,
  }),
  registerOrganisation: mutation(
    'Registers an account that several people act for. You own it.',
    accounts.registerOrganisation,
    { accountId: TEXT, displayName: TEXT, founderId: text('Its first owner: yourself.') },
  ),
  joinOrganisation: mutation(
    'Agrees to act for an organisation, from when it names this account.',
    accounts.joinOrganisation,
    { accountId: text('The member: yourself.'), organisationId: TEXT },
  ),
  setMember: mutation('Lets somebody who joins it act for an organisation, or changes as what.', accounts.setMember, {
    accountId: TEXT,
    memberId: TEXT,
    role: text(`One of ${memberRoles.join(', ')}.`),
  }),
  removeMember: mutation('Ends a membership at once; of oneself, for good.', accounts.removeMember, {
    accountId: TEXT,
    memberId: TEXT,
  }),
  endSessions: mutation('Signs an account out everywhere, at once.', accounts.endSessions, {
    accountId: TEXT,
    reason: usually('asked for'),
  }),
  issueApiKey: mutation(
    'Makes an API key. Its text is shown this once.',
    accounts.issueApiKey,
    {
      accountId: TEXT,
      scopes: { ...TEXTS, description: `Of ${keyScopes.join(', ')}.` },
      name: usually(''),
      agents: { ...TEXTS, nullable: true },
    },
    () => IssuedApiKey,
  ),
  revokeApiKey: mutation('Ends a key at once. Streams that it has open are cut.', accounts.revokeApiKey, {
    accountId: TEXT,
    keyId: TEXT,
    reason: usually('revoked'),
  }),

  submitAgent: mutation(
    'Submits an agent, or a new version of one that exists.',
    (ports: GatewayPorts, context: RequestContext, { source, runtime, ...agent }: NewAgent & Code) =>
      submitAgent(ports, context, agent, async () => ({ source, runtime })),
    {
      ownerId: TEXT,
      name: TEXT,
      games: TEXTS,
      source: text('Code that defines act(observation).'),
      runtime: usually('javascript', 'What runs it: javascript, node or python.'),
    },
  ),

  proposeMatch: mutation('Proposes a match. It is played once the stakes are in escrow.', matches.proposeMatch, {
    game: TEXT,
    agents: { ...TEXTS, description: 'In the order of their seats.' },
    stakeCents: usually('0', 'Each seat stakes this much.'),
    seed: maybe('Chance and agents draw from it.'),
    currency: usually('PLAY', 'Of the stakes and the bounty.'),
    bountyCents: maybe('A prize beside the pot.'),
    sponsorId: maybe('Whose wallet the bounty comes from.'),
  }),
  voidMatch: mutation('Calls off a match that is not settled, and gives the stakes back.', matches.voidMatch, {
    matchId: TEXT,
    detail: text('Why.'),
  }),
  reverseMatch: mutation(
    'Undoes a settled match: every stake goes back, and what was won is taken back.',
    matches.reverseMatch,
    { matchId: TEXT, reason: text('Why.') },
  ),

  grantCredits: mutation('Grants play credits.', money.grantCredits, {
    accountId: TEXT,
    amountCents: TEXT,
    reason: usually('grant'),
  }),
  freezeWallet: mutation('Stops or allows withdrawals from a wallet. Play goes on.', money.freezeWallet, {
    accountId: TEXT,
    frozen: { type: () => Boolean },
    reason: text('Why.'),
  }),
  setBudget: mutation(
    'Caps what a wallet, or one of its agents, may spend. A cap left out is lifted.',
    money.setBudget,
    {
      accountId: TEXT,
      currency: usually('COMPUTE'),
      agentId: MAYBE,
      perRunCents: MAYBE,
      perDayCents: MAYBE,
      totalCents: MAYBE,
    },
  ),
  deposit: mutation(
    'Opens a checkout. The wallet is credited when Stripe has confirmed it.',
    paid(money.deposit),
    { accountId: TEXT, amountCents: TEXT, currency: usually(OFFER_CURRENCY) },
    aPayment,
  ),
  buyCredits: mutation(
    'Opens a checkout for a pack of compute credits.',
    paid(money.buyCredits),
    { accountId: TEXT, packId: TEXT },
    aPayment,
  ),
  buyCreditsFromWallet: mutation(
    'Buys a pack of compute credits with money that is in the wallet.',
    money.buyCreditsFromWallet,
    { accountId: TEXT, packId: TEXT },
  ),
  refundPayment: mutation(
    'Gives a payment, or a part of it, back the way it came. For staff.',
    paid(money.refundPayment),
    {
      accountId: TEXT,
      paymentId: TEXT,
      amountCents: maybe('All that is left when left out.'),
      reason: usually('refund'),
    },
    aPayment,
  ),
  subscribe: mutation(
    'Opens a checkout for a plan. For the free one, see endPlan.',
    paid(money.subscribe),
    { accountId: TEXT, planId: TEXT },
    aPayment,
  ),
  endPlan: mutation('Ends the plan; the free one is what remains.', money.endPlan, { accountId: TEXT }),
  openPayoutAccount: mutation(
    'Sets up the account that withdrawals go to.',
    money.openPayoutAccount,
    { accountId: TEXT },
    () => OnboardingLink,
  ),
  withdraw: mutation(
    'Pays money out to the payout account. It is held until it is paid.',
    paid(money.withdraw),
    { accountId: TEXT, amountCents: TEXT, currency: usually(OFFER_CURRENCY) },
    aPayment,
  ),
  cancelWithdrawal: mutation(
    'Stops a withdrawal that is not paid yet, and gives the money back. For staff.',
    paid(money.cancelWithdrawal),
    { accountId: TEXT, withdrawalId: TEXT, reason: usually('cancelled') },
    aPayment,
  ),

  revokeRunner: mutation("Ends the trust in a runner's key, for good.", operations.revokeRunner, {
    runnerId: TEXT,
    reason: text('Why.'),
  }),
  rotateSigningKey: mutation(
    'Signs access tokens with a new key from now on; its kid. For staff.',
    operations.rotateSigningKey,
    {},
    () => String,
  ),
  replayBusLetters: mutation(
    'Hands dead letters to their policies again.',
    operations.replayBusLetters,
    { group: MAYBE, eventId: MAYBE },
    () => Replayed,
  ),
  rebuildProjection: mutation(
    'Builds a view anew beside the one that serves, then swaps them.',
    async (ports, context, data: { view: string }) =>
      projectionOf(await operations.rebuildProjection(ports, context, data)),
    { view: TEXT },
    () => Projection,
  ),
});
