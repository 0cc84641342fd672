import { type Actor, AgonError, type CommandOf, type Decider, isStaff, type MemberRole } from '../kernel/index.js';
import type * as commands from './commands.js';
import { MACHINE, STAFF } from './commands.js';
import type { AccountEvent, ApiKeyIssued } from './events.js';

type AccountCommand = CommandOf<typeof commands>;

export type ApiKey = ApiKeyIssued['data'] & { readonly revoked: boolean };

export interface AccountState {
  readonly registered: boolean;
  readonly keys: Readonly<Record<string, ApiKey>>;
  /** Who signs in here; undefined for organisations, for accounts of machines, and once a person was erased. */
  readonly personId: string | undefined;
  readonly totp: boolean;
  /** Sessions of an earlier epoch are over. */
  readonly epoch: number;
  readonly members: Readonly<Record<string, MemberRole>>;
  /** Once it had a member it never becomes one person's. */
  readonly isOrganisation: boolean;
  /** The organisations that whoever signs in here has agreed to act for. */
  readonly joined: readonly string[];
  readonly refusedAt: string | undefined;
}

/** Keys of one account that are in force at a time. */
export const KEYS_MAX = 32;
const MEMBERS_MAX = 200;
/** Each of them is looked at whenever the member asks for something. */
export const ORGANISATIONS_MAX = 50;
/** Keys that were revoked are shown for a while; how many there ever were does not matter to the rest. */
const REVOKED_KEPT = 32;
const REFUSALS_EVERY_MS = 60_000;

/** The arena's own names: in the log they stand for something else than an account. */
const RESERVED: readonly string[] = [STAFF, MACHINE, 'runner', 'agon', 'admin', 'system', 'house'];

function evolve(state: AccountState, event: AccountEvent): AccountState {
  switch (event.type) {
    case 'OwnerRegistered':
      return { ...state, registered: true };
    case 'ApiKeyIssued':
      return { ...state, keys: { ...state.keys, [event.data.keyId]: { ...event.data, revoked: false } } };
    case 'ApiKeyRevoked': {
      const key = state.keys[event.data.keyId];
      if (!key) return state;
      const { [key.keyId]: _before, ...others } = state.keys;
      return { ...state, keys: withoutOldest({ ...others, [key.keyId]: { ...key, revoked: true } }) };
    }
    case 'PersonEnrolled':
      return { ...state, personId: event.data.personId, epoch: state.epoch + 1 };
    case 'PasswordChanged':
    case 'SessionsEnded':
      return { ...state, epoch: state.epoch + 1 };
    case 'TotpEnabled':
      return { ...state, totp: true };
    case 'TotpDisabled':
      return { ...state, totp: false, epoch: state.epoch + 1 };
    case 'PersonErased':
      return { ...state, personId: undefined, totp: false, joined: [], epoch: state.epoch + 1 };
    case 'IdentityLinked':
      return state;
    case 'IdentityUnlinked':
      return { ...state, epoch: state.epoch + 1 };
    case 'SignInRefused':
      return { ...state, refusedAt: event.data.at };
    case 'MemberSet':
      return {
        ...state,
        isOrganisation: true,
        members: { ...state.members, [event.data.memberId]: event.data.role },
      };
    case 'MemberRemoved': {
      const { [event.data.memberId]: _gone, ...members } = state.members;
      return { ...state, members };
    }
    case 'OrganisationJoined':
      return { ...state, joined: [...state.joined, event.data.organisationId] };
    case 'OrganisationLeft':
      return { ...state, joined: state.joined.filter((each) => each !== event.data.organisationId) };
  }
}

/** Without the key that was revoked first, once there are too many of those. */
function withoutOldest(keys: AccountState['keys']): AccountState['keys'] {
  const revoked = Object.values(keys).filter((key) => key.revoked);
  if (revoked.length <= REVOKED_KEPT) return keys;
  const { [revoked[0]?.keyId ?? '']: _forgotten, ...others } = keys;
  return others;
}

function decide(command: AccountCommand, state: AccountState): AccountEvent[] {
  const { accountId } = command.data;
  if (command.type === 'RegisterOwner') return register(command.data, state);
  if (command.type === 'RegisterOrganisation') {
    const { founderId: memberId, displayName } = command.data;
    const founded: AccountEvent = { type: 'MemberSet', data: { accountId, memberId, role: 'owner' } };
    return [...register({ accountId, displayName }, state), founded];
  }
  if (command.type === 'EnrolPerson') return enrol(command.data, state, command.meta.actor);
  if (!state.registered && accountId !== STAFF) {
    throw new AgonError('ACCOUNTS.UNKNOWN', `There is no account ${accountId}. Register it first.`);
  }
  switch (command.type) {
    case 'IssueApiKey':
      return issue(command, state);
    case 'RevokeApiKey':
      return revoke(command, state);
    case 'SetMember':
      return setMember(command, state);
    case 'RemoveMember':
      return removeMember(command, state);
    case 'JoinOrganisation':
      return join(command, state);
    case 'LeaveOrganisation':
      return state.joined.includes(command.data.organisationId)
        ? [{ type: 'OrganisationLeft', data: command.data }]
        : [];
    case 'EndSessions':
      return [{ type: 'SessionsEnded', data: command.data }];
    case 'RefuseSignIn': {
      const { time: at } = command.meta;
      const since = state.refusedAt === undefined ? Number.NaN : Date.parse(at) - Date.parse(state.refusedAt);
      return since < REFUSALS_EVERY_MS ? [] : [{ type: 'SignInRefused', data: { ...command.data, at } }];
    }
    default:
      return ofPerson(command, state);
  }
}

function register(data: { accountId: string; displayName: string }, state: AccountState): AccountEvent[] {
  assertFree(data.accountId);
  if (state.registered) throw new AgonError('ACCOUNTS.TAKEN', `The name ${data.accountId} is taken. Choose another.`);
  return [{ type: 'OwnerRegistered', data }];
}

function assertFree(accountId: string): void {
  if (!RESERVED.includes(accountId)) return;
  throw new AgonError('ACCOUNTS.RESERVED', `The name ${accountId} is the arena's own. Choose another.`);
}

type OfPerson = Extract<AccountCommand, { data: { personId: string } }>;

/** Of a name nobody has, whoever comes first. To an account that is there already, only staff lets somebody in. */
function enrol(data: OfPerson['data'], state: AccountState, actor: Actor): AccountEvent[] {
  const { accountId, personId } = data;
  assertFree(accountId);
  const enrolled: AccountEvent = { type: 'PersonEnrolled', data: { accountId, personId } };
  if (!state.registered) return [...register({ accountId, displayName: accountId }, state), enrolled];
  if (state.personId !== undefined || state.isOrganisation || !isStaff(actor)) {
    throw new AgonError('ACCOUNTS.TAKEN', `The name ${accountId} is taken. Choose another.`);
  }
  return [enrolled];
}

function ofPerson(command: Exclude<OfPerson, { type: 'EnrolPerson' }>, state: AccountState): AccountEvent[] {
  const { accountId, personId } = command.data;
  if (command.type === 'ErasePerson' && state.personId === undefined) return [];
  if (state.personId !== personId) {
    throw new AgonError('ACCOUNTS.NO_PERSON', `Nobody signs in to ${accountId}, or somebody else by now.`);
  }
  switch (command.type) {
    case 'ChangePassword':
      return [{ type: 'PasswordChanged', data: command.data }];
    case 'EnableTotp':
      return state.totp ? [] : [{ type: 'TotpEnabled', data: command.data }];
    case 'DisableTotp':
      return state.totp ? [{ type: 'TotpDisabled', data: command.data }] : [];
    case 'LinkIdentity':
      return [{ type: 'IdentityLinked', data: command.data }];
    case 'UnlinkIdentity':
      return [{ type: 'IdentityUnlinked', data: command.data }];
    case 'ErasePerson':
      return [{ type: 'PersonErased', data: command.data }];
  }
}

function setMember({ data }: commands.SetMember, state: AccountState): AccountEvent[] {
  const { accountId, memberId, role } = data;
  if (accountId === STAFF && (role === 'owner' || role === 'member')) {
    throw new AgonError('ACCOUNTS.BAD_ROLE', 'Staff are operators, auditors and admins.');
  }
  if (state.personId !== undefined || memberId === accountId) {
    throw new AgonError('ACCOUNTS.IS_PERSON', `${accountId} is one person's account. Register an organisation.`);
  }
  if (state.members[memberId] === role) return [];
  if (role !== 'owner') assertOwnerLeft(accountId, memberId, state);
  if (Object.keys(state.members).length >= MEMBERS_MAX && !state.members[memberId]) {
    throw new AgonError('ACCOUNTS.TOO_MANY_MEMBERS', `An organisation has at most ${MEMBERS_MAX} members.`);
  }
  return [{ type: 'MemberSet', data }];
}

function removeMember({ data, meta }: commands.RemoveMember, state: AccountState): AccountEvent[] {
  const { accountId, memberId } = data;
  const role = state.members[memberId];
  if (!role) return [];
  // Whoever was erased owns nothing any more, be it the last owner: staff names another.
  if (meta.actor.role !== 'system') assertOwnerLeft(accountId, memberId, state);
  return [{ type: 'MemberRemoved', data }];
}

function join({ data }: commands.JoinOrganisation, state: AccountState): AccountEvent[] {
  if (state.personId === undefined) {
    throw new AgonError('ACCOUNTS.NO_PERSON', `Nobody signs in to ${data.accountId}, and only people act for others.`);
  }
  if (state.joined.includes(data.organisationId)) return [];
  assertJoins(state);
  return [{ type: 'OrganisationJoined', data }];
}

export function assertJoins({ joined }: Pick<AccountState, 'joined'>): void {
  if (joined.length < ORGANISATIONS_MAX) return;
  const why = `One person acts for at most ${ORGANISATIONS_MAX} organisations. Leave one first.`;
  throw new AgonError('ACCOUNTS.TOO_MANY_ORGANISATIONS', why);
}

function assertOwnerLeft(accountId: string, memberId: string, { members }: AccountState): void {
  const owners = Object.keys(members).filter((each) => members[each] === 'owner');
  if (owners.length !== 1 || owners[0] !== memberId) return;
  throw new AgonError('ACCOUNTS.LAST_OWNER', `${memberId} is the last owner of ${accountId}. Make another one first.`);
}

function issue({ data }: commands.IssueApiKey, state: AccountState): AccountEvent[] {
  if (state.keys[data.keyId]) throw new AgonError('ACCOUNTS.KEY_EXISTS', `There is a key ${data.keyId} already.`);
  const foreign = data.agents?.find((agentId) => !agentId.startsWith(`${data.accountId}.`));
  if (foreign !== undefined) {
    throw new AgonError('ACCOUNTS.NOT_YOURS', `${foreign} is not an agent of ${data.accountId}.`);
  }
  // Whether they are still of staff is asked again whenever the key is used.
  if (data.scopes.includes('log') && data.accountId !== STAFF && !state.joined.includes(STAFF)) {
    throw new AgonError(
      'ACCOUNTS.NOT_STAFF',
      `Keys to the log are for ${STAFF}, and ${data.accountId} has not joined.`,
    );
  }
  if (Object.values(state.keys).filter(({ revoked }) => !revoked).length >= KEYS_MAX) {
    throw new AgonError('ACCOUNTS.TOO_MANY_KEYS', `An account has at most ${KEYS_MAX} keys. Revoke one first.`);
  }
  return [{ type: 'ApiKeyIssued', data }];
}

function revoke({ data }: commands.RevokeApiKey, state: AccountState): AccountEvent[] {
  const key = state.keys[data.keyId];
  if (!key) throw new AgonError('ACCOUNTS.UNKNOWN_KEY', `${data.accountId} has no key ${data.keyId}.`);
  return key.revoked ? [] : [{ type: 'ApiKeyRevoked', data }];
}

export const accountDecider: Decider<AccountState, AccountCommand, AccountEvent> = {
  initial: {
    registered: false,
    keys: {},
    personId: undefined,
    totp: false,
    epoch: 0,
    members: {},
    isOrganisation: false,
    joined: [],
    refusedAt: undefined,
  },
  evolve,
  decide,
};
