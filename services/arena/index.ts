import { defineContext } from '../kernel/index.js';
import * as commands from './commands.js';
import { arenaDecider } from './decider.js';
import { arenaEvents } from './events.js';
import { escrow } from './policies.js';

export * from './commands.js';
export type * from './events.js';
export { arenaEvents } from './events.js';
export * from './pairing.js';
export * from './report.js';
export { type Patience, WaitingMatches } from './waiting.js';
export { WorkQueue } from './work.js';

export const arena = defineContext({
  name: 'arena',
  streams: 'match',
  events: arenaEvents,
  decider: arenaDecider,
  commands,
  policies: [escrow],
});
