import {
  assertJoins,
  EndSessions,
  IssueApiKey,
  JoinOrganisation,
  type KeyScope,
  LeaveOrganisation,
  RegisterOrganisation,
  RegisterOwner,
  RemoveMember,
  RevokeApiKey,
  SetMember,
} from '../../services/accounts/index.js';
import { AgonError, type CommandMeta, derivedId } from '../../services/kernel/index.js';
import { metaOf, type RequestContext } from '../auth/actor.js';
import { newApiKey } from '../auth/api-key.js';
import type { GatewayPorts } from '../ports.js';
import { type AskPorts, asks, type Receipt, send } from './ask.js';

type Ports = AskPorts & Pick<GatewayPorts, 'identities'>;

const accountIn = ({ identities }: Ports, accountId: string) => identities.ports.directory.account(accountId);

/** The meta of what is done along with a command, once however often that is repeated. */
const following = (meta: CommandMeta): CommandMeta => ({ ...meta, id: derivedId(meta.id, 'along') });

export const registerOwner = asks(RegisterOwner, ({ accountId }) => accountId);

type Founding = RegisterOrganisation['data'];

export async function registerOrganisation(ports: Ports, context: RequestContext, data: Founding): Promise<Receipt> {
  const { accountId, founderId } = data;
  const meta = metaOf(ports, context, 'RegisterOrganisation');
  ports.identities.signIn.assertOpen(accountId, meta.actor);
  const itself = meta.actor.id === founderId;
  if (itself) assertJoins(await accountIn(ports, founderId));
  const founded = await send(ports, accountId, new RegisterOrganisation(data, meta));
  // Whoever founds for somebody else has named an owner, who has yet to join.
  const joined = { accountId: founderId, organisationId: accountId };
  if (itself) await ports.execute(new JoinOrganisation(joined, following(meta)));
  return founded;
}

export const joinOrganisation = asks(JoinOrganisation, ({ organisationId }) => organisationId);

export async function setMember(ports: Ports, context: RequestContext, data: SetMember['data']): Promise<Receipt> {
  const command = new SetMember(data, metaOf(ports, context, 'SetMember'));
  // A name that nobody has could be taken later, by anybody.
  if (!(await accountIn(ports, data.memberId)).registered) {
    throw new AgonError('ACCOUNTS.UNKNOWN', `There is no account ${data.memberId}.`);
  }
  return send(ports, data.accountId, command);
}

/** Ends a membership; whoever leaves by themselves also takes back having joined. */
type Member = RemoveMember['data'];

export async function removeMember(ports: Ports, context: RequestContext, data: Member): Promise<Receipt> {
  const { accountId, memberId } = data;
  const meta = metaOf(ports, context, 'RemoveMember');
  const removing = new RemoveMember(data, meta);
  if (meta.actor.id !== memberId) return send(ports, accountId, removing);
  const leaving = new LeaveOrganisation({ accountId: memberId, organisationId: accountId }, following(meta));
  const { members } = await accountIn(ports, accountId);
  if (!members[memberId]) return send(ports, accountId, leaving);
  const removed = await send(ports, accountId, removing);
  await ports.execute(leaving);
  return removed;
}

export const endSessions = asks(EndSessions, ({ accountId }) => accountId);

/** The key's text is in the answer, and kept nowhere. */
export async function issueApiKey(
  ports: AskPorts,
  context: RequestContext,
  data: { accountId: string; scopes: KeyScope[]; name: string; agents?: string[] },
): Promise<{ keyId: string; key: string }> {
  const meta = metaOf(ports, context, 'IssueApiKey');
  const { keyId, text, secretHash } = newApiKey(data.accountId);
  await ports.execute(new IssueApiKey({ ...data, keyId, secretHash }, meta));
  return { keyId, key: text };
}

export const revokeApiKey = asks(RevokeApiKey, ({ keyId }) => keyId);
