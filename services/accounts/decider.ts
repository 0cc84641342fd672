import { AgonError, type Decider } from '../kernel/index.js';
import type { AccountCommand } from './commands.js';
import type { AccountEvent } from './events.js';

export interface AccountState {
  readonly registered: boolean;
}

function evolve(_state: AccountState, event: AccountEvent): AccountState {
  switch (event.type) {
    case 'OwnerRegistered':
      return { registered: true };
  }
}

function decide(command: AccountCommand, state: AccountState): AccountEvent[] {
  switch (command.type) {
    case 'RegisterOwner':
      if (state.registered) {
        throw new AgonError('ACCOUNTS.TAKEN', `The name ${command.data.accountId} is taken. Choose another.`);
      }
      return [{ type: 'OwnerRegistered', data: command.data }];
  }
}

export const accountDecider: Decider<AccountState, AccountCommand, AccountEvent> = {
  initial: { registered: false },
  evolve,
  decide,
};
