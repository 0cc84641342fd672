import { defineContext } from '../kernel/index.js';
import { PublishVersion, RegisterExternalAgent, SubmitAgent } from './commands.js';
import { agentDecider } from './decider.js';
import { agentEvents } from './events.js';

export const agents = defineContext({
  name: 'agents',
  streams: 'agent',
  events: agentEvents,
  decider: agentDecider,
  commands: [SubmitAgent, PublishVersion, RegisterExternalAgent],
});
