import { defineContext } from '../kernel/index.js';
import * as commands from './commands.js';
import { runnerDecider } from './decider.js';
import { runnerEvents } from './events.js';

export * from './commands.js';
export { trustedKey } from './decider.js';
export { type RunnerEvent, runnerEvents } from './events.js';

export const runners = defineContext({
  name: 'runners',
  streams: 'runner',
  events: runnerEvents,
  decider: runnerDecider,
  commands,
});
