import { defineContext } from '../kernel/index.js';
import * as commands from './commands.js';
import { sessionDecider } from './decider.js';
import { sessionEvents } from './events.js';

export * from './commands.js';
export { type Session, type SessionState, sessionDecider } from './decider.js';
export { type Method, type SessionEvent, sessionEvents } from './events.js';

export const sessions = defineContext({
  name: 'sessions',
  streams: 'session',
  events: sessionEvents,
  decider: sessionDecider,
  commands,
});
