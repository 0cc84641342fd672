import { defineContext } from '../kernel/index.js';
import {
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
  RefuseSignIn,
  RegisterOrganisation,
  RegisterOwner,
  RemoveMember,
  RevokeApiKey,
  SetMember,
  UnlinkIdentity,
} from './commands.js';
import { accountDecider } from './decider.js';
import { accountEvents } from './events.js';

export const accounts = defineContext({
  name: 'accounts',
  streams: 'account',
  events: accountEvents,
  decider: accountDecider,
  commands: [
    RegisterOwner,
    RegisterOrganisation,
    IssueApiKey,
    RevokeApiKey,
    EnrolPerson,
    ChangePassword,
    EnableTotp,
    DisableTotp,
    LinkIdentity,
    UnlinkIdentity,
    RefuseSignIn,
    EndSessions,
    ErasePerson,
    SetMember,
    RemoveMember,
    JoinOrganisation,
    LeaveOrganisation,
  ],
});
