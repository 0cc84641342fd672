export {
  appointsStaff,
  ChangePassword,
  DisableTotp,
  EnableTotp,
  EndSessions,
  EnrolPerson,
  ErasePerson,
  IssueApiKey,
  JoinOrganisation,
  LeaveOrganisation,
  LinkIdentity,
  MACHINE,
  RefuseSignIn,
  RegisterOrganisation,
  RegisterOwner,
  RemoveMember,
  RevokeApiKey,
  SetMember,
  STAFF,
  UnlinkIdentity,
} from './commands.js';
export { type AccountState, type ApiKey, accountDecider, assertJoins } from './decider.js';
export { type AccountEvent, accountEvents, type KeyScope, keyScopes, ownerScopes } from './events.js';
export { accounts } from './module.js';
export { type Identity, type Person, personSchema, type Vault } from './vault.js';
