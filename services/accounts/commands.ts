import { z } from 'zod';
import {
  type Actor,
  actsFor,
  chosen,
  commandsOn,
  defineCommand,
  isStaff,
  isSystem,
  type MemberRole,
  notChosen,
  slug,
  text,
} from '../kernel/index.js';
import type { AccountState } from './decider.js';
import { accountEvents, apiKeyId, factor, memberRole, scopes, secretHash } from './events.js';

const { specs } = accountEvents;
const stream = (data: { accountId: string }) => `account-${data.accountId}`;
const byItself = commandsOn(stream, (actor, { accountId }) => actsFor(actor, accountId, 'owner'));
const byOperator = commandsOn(stream, (actor, { accountId }) => actsFor(actor, accountId, 'operator'));
const byMember = commandsOn(stream, (actor, { accountId }) => actsFor(actor, accountId));
const bySystem = commandsOn(stream, isSystem);

/** The organisation whose operators, auditors and admins run this arena. */
export const STAFF = 'staff';
/** Whoever holds the token in the data folder. No account has this name. */
export const MACHINE = 'operator';

const newAccount = {
  accountId: chosen('name', slug),
  displayName: chosen('title', z.string().trim().pipe(text(80, 1))),
};

export class RegisterOwner extends byMember('RegisterOwner', z.object(newAccount)) {}

/** An account that several people act for. Whoever founds it owns it. */
export class RegisterOrganisation extends defineCommand({
  type: 'RegisterOrganisation',
  data: z.object({ ...newAccount, founderId: slug }),
  stream,
  allow: (actor, data) => actsFor(actor, data.founderId, 'owner'),
}) {}

/**
 * A key with which an agent, or a script, acts for its owner within the scopes. Only the secret's hash comes here. Keys to
 * the log are given out by those who run the arena, as what they are by a second factor, and not by a password alone.
 */
export class IssueApiKey extends defineCommand({
  type: 'IssueApiKey',
  data: z.object({
    accountId: slug,
    keyId: apiKeyId,
    name: chosen('title', text(80)),
    scopes,
    agents: z
      .array(notChosen('names an agent that is there', text(80, 3)))
      .min(1)
      .max(32)
      .optional(),
    secretHash,
  }),
  stream,
  allow: (actor, data) => (data.scopes.includes('log') ? isStaff(actor) : actsFor(actor, data.accountId, 'operator')),
}) {}

export class RevokeApiKey extends byOperator(
  'RevokeApiKey',
  z.object({
    accountId: slug,
    keyId: apiKeyId,
    reason: notChosen('is shown to the account and to staff alone', text(200)),
  }),
) {}

/** Lets somebody sign in to an account, which is registered with it if need be. */
export class EnrolPerson extends byItself('EnrolPerson', specs.PersonEnrolled.schema) {}
export class ChangePassword extends byItself('ChangePassword', specs.PasswordChanged.schema) {}
export class EnableTotp extends byItself('EnableTotp', specs.TotpEnabled.schema) {}
export class DisableTotp extends byItself('DisableTotp', specs.TotpDisabled.schema) {}
export class LinkIdentity extends byItself('LinkIdentity', specs.IdentityLinked.schema) {}
export class UnlinkIdentity extends byItself('UnlinkIdentity', specs.IdentityUnlinked.schema) {}
export class RefuseSignIn extends bySystem('RefuseSignIn', z.object({ accountId: slug, factor })) {}

/** Signs out everywhere. */
export class EndSessions extends byItself('EndSessions', specs.SessionsEnded.schema) {}

/** What is personal is destroyed before this is said. */
export class ErasePerson extends byItself('ErasePerson', specs.PersonErased.schema) {}

/** Among staff only admins and the machine itself appoint: whoever operates the arena does not make more operators. */
export const appointsStaff = ({ id, role }: Actor): boolean => role === 'admin' || role === 'system' || id === MACHINE;

const appoints = (actor: Actor, { accountId }: { accountId: string }) =>
  accountId === STAFF ? appointsStaff(actor) : actsFor(actor, accountId, 'admin');

/** Owners are made and unmade by owners: an admin does not get above them. */
const isAbove = (actor: Actor, { accountId }: { accountId: string }, roles: readonly (MemberRole | undefined)[]) =>
  !roles.includes('owner') || actsFor(actor, accountId, 'owner');

export class SetMember extends defineCommand({
  type: 'SetMember',
  data: z.object({ accountId: slug, memberId: slug, role: memberRole }),
  stream,
  allow: appoints,
  allowGiven: (actor, data, { members }: AccountState) => isAbove(actor, data, [data.role, members[data.memberId]]),
}) {}

export class RemoveMember extends defineCommand({
  type: 'RemoveMember',
  data: specs.MemberRemoved.schema,
  stream,
  // Everybody may leave.
  allow: (actor, data) => appoints(actor, data) || (actor.role !== 'runner' && actor.id === data.memberId),
  allowGiven: (actor, data, { members }: AccountState) =>
    actor.id === data.memberId || isAbove(actor, data, [members[data.memberId]]),
}) {}

/** A membership takes effect when both have said so, in whatever order: nobody is made a member unasked. */
export class JoinOrganisation extends byItself('JoinOrganisation', specs.OrganisationJoined.schema) {}
export class LeaveOrganisation extends byItself('LeaveOrganisation', specs.OrganisationLeft.schema) {}
