import { defineContext } from '../kernel/index.js';
import { RegisterRunner, RevokeRunner } from './commands.js';
import { runnerDecider } from './decider.js';
import { runnerEvents } from './events.js';

export const runners = defineContext({
  name: 'runners',
  streams: 'runner',
  events: runnerEvents,
  decider: runnerDecider,
  commands: [RegisterRunner, RevokeRunner],
});
