export { agentIdOf, PublishVersion, SubmitAgent } from './commands.js';
export { type AgentEvent, agentEvents } from './events.js';
export { agents } from './module.js';
