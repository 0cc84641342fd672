export { RegisterOwner } from './commands.js';
export { type AccountEvent, accountEvents } from './events.js';
export { accounts } from './module.js';
