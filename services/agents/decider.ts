import { AgonError, type CommandOf, type Decider, NO_CODE, type SeatRuntime } from '../kernel/index.js';
import type * as commands from './commands.js';
import { agentIdOf } from './commands.js';
import type { AgentEvent } from './events.js';

type AgentCommand = CommandOf<typeof commands>;

export type AgentState =
  | { readonly version: 0 }
  | {
      readonly version: number;
      readonly codeDigest: string;
      readonly runtime: SeatRuntime;
      readonly games: readonly string[];
    };

function evolve(state: AgentState, event: AgentEvent): AgentState {
  switch (event.type) {
    case 'AgentSubmitted':
    case 'AgentVersionPublished': {
      const { version, codeDigest, runtime } = event.data;
      const games = 'games' in event.data ? event.data.games : 'games' in state ? state.games : [];
      return { version, codeDigest, runtime, games };
    }
    case 'ExternalAgentRegistered':
      return { version: 1, codeDigest: NO_CODE, runtime: 'external', games: event.data.games };
  }
}

function decide(command: AgentCommand, state: AgentState): AgentEvent[] {
  const agentId = agentIdOf(command.data.ownerId, command.data.name);
  switch (command.type) {
    case 'SubmitAgent':
      if (state.version > 0) throw exists(agentId);
      return [{ type: 'AgentSubmitted', data: { ...command.data, agentId, version: 1 } }];
    case 'PublishVersion': {
      if (!('codeDigest' in state))
        throw new AgonError('AGENTS.UNKNOWN', `There is no agent ${agentId}. Submit it first.`);
      if (state.runtime === 'external') {
        throw new AgonError('AGENTS.EXTERNAL', `${agentId} plays from outside: there is no code of it to publish.`);
      }
      // The same code again is the same version: publishing is idempotent by content.
      if (state.codeDigest === command.data.codeDigest) return [];
      const { codeDigest, codeBytes, runtime } = command.data;
      const version = state.version + 1;
      return [{ type: 'AgentVersionPublished', data: { agentId, version, codeDigest, codeBytes, runtime } }];
    }
    case 'RegisterExternalAgent':
      return registerExternal(command, agentId, state);
  }
}

/** An agent that comes again says the same again, and nothing happens. */
function registerExternal({ data }: commands.RegisterExternalAgent, agentId: string, state: AgentState): AgentEvent[] {
  if (!('games' in state)) return [{ type: 'ExternalAgentRegistered', data: { ...data, agentId } }];
  const same = [...data.games].sort().join() === [...state.games].sort().join();
  if (state.runtime === 'external' && same) return [];
  throw exists(agentId);
}

const exists = (agentId: string) =>
  new AgonError('AGENTS.EXISTS', `${agentId} exists. Publish a new version of it, or choose another name.`);

export const agentDecider: Decider<AgentState, AgentCommand, AgentEvent> = { initial: { version: 0 }, evolve, decide };

/** The agent, if there is one. */
export const agentFrom = (state: AgentState): Exclude<AgentState, { version: 0 }> | undefined =>
  'codeDigest' in state ? state : undefined;
