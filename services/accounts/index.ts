export { IssueApiKey, RegisterOwner, RevokeApiKey } from './commands.js';
export { type ApiKey, keysFrom } from './decider.js';
export { type AccountEvent, accountEvents, type KeyScope, keyScopes } from './events.js';
export { accounts } from './module.js';
