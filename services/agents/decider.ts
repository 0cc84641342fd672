import { AgonError, type Decider } from '../kernel/index.js';
import { type AgentCommand, agentIdOf } from './commands.js';
import type { AgentEvent } from './events.js';

export type AgentState = { readonly version: 0 } | { readonly version: number; readonly codeDigest: string };

function evolve(_state: AgentState, event: AgentEvent): AgentState {
  switch (event.type) {
    case 'AgentSubmitted':
    case 'AgentVersionPublished':
      return { version: event.data.version, codeDigest: event.data.codeDigest };
  }
}

function decide(command: AgentCommand, state: AgentState): AgentEvent[] {
  const agentId = agentIdOf(command.data.ownerId, command.data.name);
  switch (command.type) {
    case 'SubmitAgent':
      if (state.version > 0) {
        throw new AgonError('AGENTS.EXISTS', `${agentId} exists. Publish a new version of it, or choose another name.`);
      }
      return [{ type: 'AgentSubmitted', data: { ...command.data, agentId, version: 1 } }];
    case 'PublishVersion': {
      if (!('codeDigest' in state))
        throw new AgonError('AGENTS.UNKNOWN', `There is no agent ${agentId}. Submit it first.`);
      // The same code again is the same version: publishing is idempotent by content.
      if (state.codeDigest === command.data.codeDigest) return [];
      const { codeDigest, codeBytes, runtime } = command.data;
      const version = state.version + 1;
      return [{ type: 'AgentVersionPublished', data: { agentId, version, codeDigest, codeBytes, runtime } }];
    }
  }
}

export const agentDecider: Decider<AgentState, AgentCommand, AgentEvent> = { initial: { version: 0 }, evolve, decide };
