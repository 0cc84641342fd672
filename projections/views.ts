import { accountsView } from './accounts/view.js';
import { agentsView } from './agents/view.js';
import { balancesView } from './balances/view.js';
import { groupOf } from './engine/projector.js';
import type { View } from './engine/view.js';
import { leaderboardsView } from './leaderboards/view.js';
import { matchesView } from './matches/view.js';
import { paymentsView } from './payments/view.js';
import { runnersView } from './runners/view.js';

export { upcast } from '../services/index.js';

/** Every view there is. */
export const views: readonly View[] = [
  agentsView,
  matchesView,
  leaderboardsView,
  balancesView,
  paymentsView,
  runnersView,
  accountsView,
];

const typesByGroup = new Map(views.map((view) => [groupOf(view), new Set(view.types)]));

/** The events that the view of a consumer group makes something of. */
export const typesOfView = (group: string): ReadonlySet<string> | undefined => typesByGroup.get(group);
