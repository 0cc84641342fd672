import { AgonError, type Decider } from '../kernel/index.js';
import type { AccountCommand, IssueApiKey, RevokeApiKey } from './commands.js';
import type { AccountEvent, ApiKeyIssued } from './events.js';

export type ApiKey = ApiKeyIssued['data'] & { readonly revoked: boolean };

export interface AccountState {
  readonly registered: boolean;
  readonly keys: Readonly<Record<string, ApiKey>>;
}

/** Keys of one account that are in force at a time. */
export const KEYS_MAX = 32;

function evolve(state: AccountState, event: AccountEvent): AccountState {
  switch (event.type) {
    case 'OwnerRegistered':
      return { ...state, registered: true };
    case 'ApiKeyIssued':
      return { ...state, keys: { ...state.keys, [event.data.keyId]: { ...event.data, revoked: false } } };
    case 'ApiKeyRevoked': {
      const key = state.keys[event.data.keyId];
      return key ? { ...state, keys: { ...state.keys, [key.keyId]: { ...key, revoked: true } } } : state;
    }
  }
}

function decide(command: AccountCommand, state: AccountState): AccountEvent[] {
  if (command.type === 'RegisterOwner') {
    if (state.registered) {
      throw new AgonError('ACCOUNTS.TAKEN', `The name ${command.data.accountId} is taken. Choose another.`);
    }
    return [{ type: 'OwnerRegistered', data: command.data }];
  }
  if (!state.registered) {
    throw new AgonError('ACCOUNTS.UNKNOWN', `There is no account ${command.data.accountId}. Register it first.`);
  }
  return command.type === 'IssueApiKey' ? issue(command, state) : revoke(command, state);
}

function issue({ data }: IssueApiKey, state: AccountState): AccountEvent[] {
  if (state.keys[data.keyId]) throw new AgonError('ACCOUNTS.KEY_EXISTS', `There is a key ${data.keyId} already.`);
  const foreign = data.agents?.find((agentId) => !agentId.startsWith(`${data.accountId}.`));
  if (foreign !== undefined) {
    throw new AgonError('ACCOUNTS.NOT_YOURS', `${foreign} is not an agent of ${data.accountId}.`);
  }
  if (Object.values(state.keys).filter(({ revoked }) => !revoked).length >= KEYS_MAX) {
    throw new AgonError('ACCOUNTS.TOO_MANY_KEYS', `An account has at most ${KEYS_MAX} keys. Revoke one first.`);
  }
  return [{ type: 'ApiKeyIssued', data }];
}

function revoke({ data }: RevokeApiKey, state: AccountState): AccountEvent[] {
  const key = state.keys[data.keyId];
  if (!key) throw new AgonError('ACCOUNTS.UNKNOWN_KEY', `${data.accountId} has no key ${data.keyId}.`);
  return key.revoked ? [] : [{ type: 'ApiKeyRevoked', data }];
}

export const accountDecider: Decider<AccountState, AccountCommand, AccountEvent> = {
  initial: { registered: false, keys: {} },
  evolve,
  decide,
};

/** The keys of an account, from its own events. */
export const keysFrom = (events: readonly AccountEvent[]): AccountState['keys'] =>
  events.reduce(evolve, accountDecider.initial).keys;
