export { agentIdOf, PublishVersion, RegisterExternalAgent, SubmitAgent } from './commands.js';
export { agentFrom } from './decider.js';
export { type AgentEvent, agentEvents } from './events.js';
export { agents } from './module.js';
