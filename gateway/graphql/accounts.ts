import { auditOf, organisationsNaming } from '../../projections/accounts/query.js';
import { canonical, memberRoles } from '../../services/kernel/index.js';
import { assertMayRead } from '../auth/actor.js';
import { about, maybe, objectType, queriesOf, query } from './declare.js';
import { connectionOf, PAGE, toConnection } from './relay.js';

const INVITATIONS_MAX = 100;

const Membership = objectType('Membership', '', {
  accountId: String,
  memberId: String,
  role: about(String, `One of ${memberRoles.join(', ')}.`),
});

const Me = objectType('Me', 'Whom the token in hand speaks for.', {
  accountId: String,
  role: String,
  memberOf: [Membership],
});

const AuditEntry = objectType('AuditEntry', 'Something that happened to an account.', {
  position: String,
  at: String,
  type: String,
  actorId: String,
  actorRole: String,
  detail: about(String, 'As JSON.'),
});

const ApiKey = objectType('ApiKey', 'A key as far as it is known here: its secret is not.', {
  keyId: String,
  name: String,
  scopes: [String],
  agents: maybe([String], 'Only for these agents; for all of the account when null.'),
  revoked: Boolean,
});

/** Who acts for whom, and what became of accounts. */
export const Accounts = queriesOf({
  me: query({
    type: maybe(Me, 'Null for whoever has no token.'),
    resolve: ({ context: { actor } }) => {
      if (!actor) return undefined;
      const { id, role, memberOf = {} } = actor;
      const memberships = Object.entries(memberOf).map(([accountId, as]) => ({ accountId, memberId: id, role: as }));
      return { accountId: id, role, memberOf: memberships };
    },
  }),
  members: query({
    type: about([Membership], 'Who acts for an organisation.'),
    args: { accountId: String },
    resolve: async ({ ports, args: { accountId }, context }) => {
      assertMayRead(context, accountId);
      const { members } = await ports.identities.ports.directory.account(accountId);
      return Object.entries(members).map(([memberId, role]) => ({ accountId, memberId, role }));
    },
  }),
  invitations: query({
    type: about(
      [Membership],
      `Organisations that name an account as a member, which has not joined them: the first ${INVITATIONS_MAX}.`,
    ),
    args: { accountId: String },
    resolve: async ({ ports, args: { accountId }, context }) => {
      assertMayRead(context, accountId);
      const { joined } = await ports.identities.ports.directory.account(accountId);
      const naming = await organisationsNaming(ports.database, accountId, INVITATIONS_MAX + joined.length);
      return naming.filter((each) => !joined.includes(each.accountId)).slice(0, INVITATIONS_MAX);
    },
  }),
  auditTrail: query({
    type: about(connectionOf(AuditEntry, 'Audit'), 'What happened to an account: newest first.'),
    args: { accountId: String, ...PAGE },
    resolve: async ({ ports, args: { accountId, ...page }, context }) => {
      assertMayRead(context, accountId);
      const found = await auditOf(ports.database, accountId, page);
      return toConnection(found, (row) => ({ ...row, position: `${row.position}`, detail: canonical(row.detail) }));
    },
  }),
  apiKeys: query({
    type: about([ApiKey], 'Those in force, and the last that were revoked.'),
    args: { accountId: String },
    resolve: async ({ ports, args: { accountId }, context }) => {
      assertMayRead(context, accountId);
      const { keys } = await ports.identities.ports.directory.account(accountId);
      return Object.values(keys).map((key) => ({ ...key, agents: key.agents ?? null }));
    },
  }),
});
