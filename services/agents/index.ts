import { defineContext } from '../kernel/index.js';
import * as commands from './commands.js';
import { agentDecider } from './decider.js';
import { agentEvents } from './events.js';

export * from './commands.js';
export { agentFrom } from './decider.js';
export { type AgentEvent, agentEvents } from './events.js';

export const agents = defineContext({
  name: 'agents',
  streams: 'agent',
  events: agentEvents,
  decider: agentDecider,
  commands,
});
