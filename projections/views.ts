import { contexts } from '../services/index.js';
import { type Upcaster, upcasterOf } from '../services/kernel/index.js';
import { agentsView } from './agents/view.js';
import { balancesView } from './balances/view.js';
import type { View } from './engine/view.js';
import { leaderboardsView } from './leaderboards/view.js';
import { matchesView } from './matches/view.js';
import { paymentsView } from './payments/view.js';

/** Every view there is. */
export const views: readonly View[] = [agentsView, matchesView, leaderboardsView, balancesView, paymentsView];

/** Reads every event of every context as its newest version. */
export const upcast: Upcaster = upcasterOf(contexts.map((context) => context.events));
