/** The house plays in three stables, so that strength shows in the balances as well as in the ratings. */
export const houseStables: Readonly<Record<string, { displayName: string; agents: readonly string[] }>> = {
  bronze: { displayName: 'Bronze Stable', agents: ['first', 'random'] },
  silver: { displayName: 'Silver Stable', agents: ['centre', 'tactician', 'greedy'] },
  gold: {
    displayName: 'Gold Stable',
    agents: ['minimax', 'searcher', 'reciprocator', 'equilibrium', 'alphabeta'],
  },
};

/** Whose agents are the house's. */
export const houseAccounts: readonly string[] = Object.keys(houseStables);
