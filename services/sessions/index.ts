export { EndSession, OpenSession, RefreshSession } from './commands.js';
export { type Session, type SessionState, sessionDecider } from './decider.js';
export { type Method, type SessionEvent, sessionEvents } from './events.js';
export { sessions } from './module.js';
