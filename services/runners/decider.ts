import { AgonError, type CommandOf, type Decider, runnerIdOf } from '../kernel/index.js';
import type * as commands from './commands.js';
import type { RunnerEvent } from './events.js';

type RunnerCommand = CommandOf<typeof commands>;

export type RunnerState =
  | { readonly status: 'unknown' }
  | { readonly status: 'registered' | 'revoked'; readonly publicKey: string };

function evolve(state: RunnerState, event: RunnerEvent): RunnerState {
  switch (event.type) {
    case 'RunnerRegistered':
      return { status: 'registered', publicKey: event.data.publicKey };
    case 'RunnerRevoked':
      return state.status === 'unknown' ? state : { ...state, status: 'revoked' };
  }
}

function decide(command: RunnerCommand, state: RunnerState): RunnerEvent[] {
  const { runnerId } = command.data;
  switch (command.type) {
    case 'RegisterRunner': {
      if (runnerIdOf(command.data.publicKey) !== runnerId) {
        throw new AgonError('RUNNERS.OTHER_KEY', `${runnerId} is not the id of this key.`);
      }
      if (state.status === 'revoked')
        throw new AgonError('RUNNERS.REVOKED', `The key of runner ${runnerId} was revoked.`);
      return state.status === 'registered' ? [] : [{ type: 'RunnerRegistered', data: command.data }];
    }
    case 'RevokeRunner':
      if (state.status === 'unknown') throw new AgonError('RUNNERS.UNKNOWN', `There is no runner ${runnerId}.`);
      return state.status === 'revoked' ? [] : [{ type: 'RunnerRevoked', data: command.data }];
  }
}

export const runnerDecider: Decider<RunnerState, RunnerCommand, RunnerEvent> = {
  initial: { status: 'unknown' },
  evolve,
  decide,
};

/** The key whose signature counts for this runner. */
export const trustedKey = (state: RunnerState): string | undefined =>
  state.status === 'registered' ? state.publicKey : undefined;
