export { RegisterRunner, RevokeRunner } from './commands.js';
export { trustedKey } from './decider.js';
export { type RunnerEvent, runnerEvents } from './events.js';
export { runners } from './module.js';
