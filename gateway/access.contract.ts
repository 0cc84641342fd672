import { derivedId } from '../services/kernel/index.js';

export type Rule = 'public' | 'own' | 'staff';

/**
 * Who may ask for what. Every field of every root type has a rule here, and is tried by it: a field that is added
 * without one fails.
 *
 * - public: anybody, also without a token
 * - own: whoever acts for the account that the arguments name, and staff
 * - staff: those who run the arena
 */
export const RULES: Readonly<Record<string, Readonly<Record<string, Rule>>>> = {
  Query: {
    ...{ games: 'public', agents: 'public', agent: 'public', matches: 'public', match: 'public' },
    ...{ seasons: 'public', leaderboard: 'public', standing: 'public', neighbours: 'public', ratingHistory: 'public' },
    ...{
      ratingAt: 'public',
      headToHead: 'public',
      headToHeadConnection: 'public',
      strengths: 'public',
      analytics: 'public',
      projections: 'public',
    },
    ...{ plans: 'public', creditPacks: 'public', trialBalance: 'public', me: 'public' },
    // What they lead to is shown to those who may see it.
    ...{ node: 'public', nodes: 'public', accounts: 'public', account: 'public', queue: 'public', runners: 'public' },
    ...{ runner: 'public', leaderboardConnection: 'public', ratingHistoryConnection: 'public' },
    ...{ balances: 'own', wallet: 'own', statement: 'own', estimateMatch: 'own', payments: 'own', payer: 'own' },
    ...{ apiKeys: 'own', members: 'own', auditTrail: 'own', invitations: 'own' },
    ...{ deadLetters: 'staff', deadLettersConnection: 'staff', busLetters: 'staff' },
  },
  Mutation: {
    ...{ registerOwner: 'own', submitAgent: 'own', setBudget: 'own', issueApiKey: 'own', revokeApiKey: 'own' },
    ...{ deposit: 'own', buyCredits: 'own', buyCreditsFromWallet: 'own', subscribe: 'own', endPlan: 'own' },
    ...{ openPayoutAccount: 'own', withdraw: 'own' },
    ...{ registerOrganisation: 'own', setMember: 'own', removeMember: 'own', endSessions: 'own' },
    joinOrganisation: 'own',
    ...{ grantCredits: 'staff', proposeMatch: 'staff', voidMatch: 'staff', reverseMatch: 'staff' },
    ...{
      freezeWallet: 'staff',
      revokeRunner: 'staff',
      refundPayment: 'staff',
      cancelWithdrawal: 'staff',
      rebuildProjection: 'staff',
      replayBusLetters: 'staff',
    },
    ...{ rotateSigningKey: 'staff' },
  },
  Subscription: { liveMatch: 'public', queue: 'public', projections: 'public' },
};

/** What ada has, by the names of arguments. */
export const ADAS: Readonly<Record<string, unknown>> = {
  ...{ accountId: 'ada', ownerId: 'ada', founderId: 'ada', sponsorId: 'ada', memberId: 'cyd' },
  ...{ agentId: 'ada.bot', agents: ['ada.bot', 'ada.bot'], name: 'bot', displayName: 'Ada', game: 'tic-tac-toe' },
  ...{ games: ['tic-tac-toe'], source: 'function act(o) { return o.legal[0] }', scopes: ['read'], view: 'agents' },
  ...{
    matchId: derivedId('no match'),
    paymentId: derivedId('no payment'),
    withdrawalId: derivedId('no withdrawal'),
    runnerId: `r-${'0'.repeat(16)}`,
    keyId: '0'.repeat(12),
  },
  ...{ amountCents: '1000', packId: 'small', planId: 'pro', role: 'auditor', frozen: true },
};
