import { defineContext } from '../kernel/index.js';
import { EndSession, OpenSession, RefreshSession } from './commands.js';
import { sessionDecider } from './decider.js';
import { sessionEvents } from './events.js';

export const sessions = defineContext({
  name: 'sessions',
  streams: 'session',
  events: sessionEvents,
  decider: sessionDecider,
  commands: [OpenSession, RefreshSession, EndSession],
});
