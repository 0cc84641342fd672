import { type Fault, faultsOf } from './fault.js';

/** Who somebody is, and what they may do or see. */
export const authorisationFaults: readonly Fault[] = [
  ...faultsOf('services/kernel/authorise.ts', 'services/kernel/handle.spec.ts', [
    ['let anybody do anything', 'if (!spec.allow(command.meta.actor, command.data))', 'if (spec.type === undefined)'],
    ['let anybody do what the state forbids', 'spec.allowGiven && !spec.allowGiven', '!spec.stream || !spec.stream'],
  ]),
  ...faultsOf('gateway/auth/tokens.ts', 'gateway/auth/tokens.spec.ts', [
    ['take a token that is for somebody else', '        audience: AUDIENCE,\n', ''],
    ['take a token of another kind', '        typ: TYPE,\n', ''],
    ['tell the private half of a signing key', 'kty, crv, x, kid,', '...this.keys?.[0]?.jwk, kty, crv, x, kid,'],
  ]),
  ...faultsOf('services/sessions/decider.ts', 'services/sessions/sessions.spec.ts', [
    ['let a refresh token be used twice', 'if (state.spent.includes(markOf(tokenHash))) {', 'if (false) {'],
  ]),
  ...faultsOf('services/accounts/decider.ts', 'services/accounts/accounts.spec.ts', [
    ['let anybody in to an account that is there', 'state.isOrganisation || !isStaff(actor)', 'state.isOrganisation'],
  ]),
  ...faultsOf('services/accounts/commands.ts', 'services/accounts/accounts.spec.ts', [
    ['give a key to the log to whoever knows a password', "data.scopes.includes('log') ? isStaff(actor) : ", ''],
    ['let an admin make owners', "|| actsFor(actor, accountId, 'owner')", "|| actsFor(actor, accountId, 'admin')"],
  ]),
  ...faultsOf('gateway/auth/totp.ts', 'gateway/auth/totp.spec.ts', [
    ['take a code of an authenticator twice', '&& step > lastStep) found = step;', ') found = step;'],
  ]),
  ...faultsOf('services/adapters/vault/file.ts', 'services/adapters/vault/file.spec.ts', [
    ['keep the key of a person who was erased', 'await rm(key, { force: true });', ''],
  ]),
  ...faultsOf('gateway/auth/actor.ts', 'gateway/access.int.spec.ts', [
    ['let a key do what no scope names', 'undefined) throw', 'undefined) return actor;\n  if (false) throw'],
  ]),
  ...faultsOf('gateway/graphql/money.ts', 'gateway/access.int.spec.ts', [
    ["show somebody's wallet to everybody", 'assertMayRead(context, accountId);\n      const { state', 'const { state'],
  ]),
  ...faultsOf('gateway/auth/api-key.ts', 'gateway/grpc/play.spec.ts', [
    [
      'let any secret open a key',
      "!key.revoked && timingSafeEqual(hashOf(secret), Buffer.from(key.secretHash, 'hex'));",
      "!key.revoked && secret !== '';",
    ],
    ['let a revoked key in', '!== undefined && !key.revoked && timingSafeEqual', '!== undefined && timingSafeEqual'],
    ['forget what a key may do', 'if (scopes.includes(scope)) return;', 'return;'],
    ['let a key speak for agents of others', 'actsFor(actor, ownerId) &&', "ownerId !== '' &&"],
  ]),
  ...faultsOf('gateway/grpc/server.ts', 'gateway/grpc/grpc.spec.ts', [
    ['take anybody for a runner', "if (actor?.role !== 'runner') {", 'if (actor === null) {'],
  ]),
  ...faultsOf('gateway/eventstore/server.ts', 'gateway/eventstore/eventstore.spec.ts', [
    ['let a key for reading write', 'if (access.write) return access;', 'if (access.actor) return access;'],
  ]),
  ...faultsOf('gateway/eventstore/appends.ts', 'gateway/eventstore/eventstore.spec.ts', [
    ["let others write into the arena's own streams", 'isOwn(stream, type)', 'isOwn(stream, type) && type === stream'],
  ]),
];
