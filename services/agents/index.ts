export { agentIdOf, PublishVersion, SubmitAgent } from './commands.js';
export { type AgentEvent, type AgentRuntime, agentEvents, runtimeNamed } from './events.js';
export { agents } from './module.js';
