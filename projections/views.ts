import { accountEvents } from '../services/accounts/index.js';
import { agentEvents } from '../services/agents/index.js';
import { arenaEvents } from '../services/arena/index.js';
import { type Upcaster, upcasterOf } from '../services/kernel/index.js';
import { paymentEvents } from '../services/payments/index.js';
import { runnerEvents } from '../services/runners/index.js';
import { walletEvents } from '../services/wallet/index.js';
import { agentsView } from './agents/view.js';
import { balancesView } from './balances/view.js';
import type { View } from './engine/view.js';
import { leaderboardsView } from './leaderboards/view.js';
import { matchesView } from './matches/view.js';
import { paymentsView } from './payments/view.js';

/** Every view there is. */
export const views: readonly View[] = [agentsView, matchesView, leaderboardsView, balancesView, paymentsView];

/** Reads every event of every context as its newest version. */
export const upcast: Upcaster = upcasterOf([
  accountEvents,
  agentEvents,
  arenaEvents,
  paymentEvents,
  runnerEvents,
  walletEvents,
]);
