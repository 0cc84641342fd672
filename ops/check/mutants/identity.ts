import type { Mutant } from './mutant.js';

const TOKENS = { file: 'gateway/auth/tokens.ts', specs: 'gateway/auth/tokens' };
const SESSIONS = { file: 'services/sessions/decider.ts', specs: 'services/sessions' };
const ACCOUNTS = { file: 'services/accounts/decider.ts', specs: 'services/accounts' };
const SIGN_IN = 'gateway/auth/sign-in.spec';
const ACCESS = 'gateway/access.spec';

export const identityMutants: readonly Mutant[] = [
  {
    name: 'take a token that is for somebody else',
    ...TOKENS,
    find: 'audience: AUDIENCE, ',
    replace: '',
  },
  {
    name: 'take a token of another issuer',
    ...TOKENS,
    find: 'audience: AUDIENCE, issuer: this.options.issuer() },',
    replace: 'audience: AUDIENCE },',
  },
  {
    name: 'take a token of another kind',
    ...TOKENS,
    find: 'algorithms: [ALGORITHM], typ: TYPE, ',
    replace: 'algorithms: [ALGORITHM], ',
  },
  {
    name: 'tell the private half of a signing key',
    ...TOKENS,
    find: "return { kty, crv, x, kid, alg: ALGORITHM, use: 'sig' } as JWK;",
    replace: "return { ...this.#keys?.[0]?.jwk, kty, crv, x, kid, alg: ALGORITHM, use: 'sig' } as JWK;",
  },
  {
    name: 'forget a signing key while its tokens are good',
    ...TOKENS,
    find: 'retiredAt === undefined || Date.parse(retiredAt) > longAgo',
    replace: 'retiredAt === undefined',
  },
  {
    name: 'let a refresh token be used twice',
    ...SESSIONS,
    find: 'if (state.spent.includes(markOf(tokenHash))) {',
    replace: 'if (false) {',
  },
  {
    name: 'end a session for whoever knows its id',
    ...SESSIONS,
    find: 'if (state.spent.includes(markOf(tokenHash))) {',
    replace: 'if (true) {',
  },
  {
    name: 'refresh a session whose time is over',
    ...SESSIONS,
    find: 'state.ended || Date.parse(state.expiresAt) <= Date.parse(meta.time)',
    replace: 'state.ended',
  },
  {
    name: 'let anybody in to an account that is there',
    ...ACCOUNTS,
    find: 'state.isOrganisation || !isStaff(actor)',
    replace: 'state.isOrganisation',
  },
  {
    name: 'let an admin make owners',
    ...ACCOUNTS,
    find: "if (actor.memberOf?.[accountId] === 'owner') return;",
    replace: 'if (actor.memberOf?.[accountId]) return;',
  },
  {
    name: 'fill the log with what was guessed',
    ...ACCOUNTS,
    find: 'return since < REFUSALS_EVERY_MS ? []',
    replace: 'return since < 0 ? []',
  },
  {
    name: 'answer faster where there is no account',
    file: 'gateway/auth/password.ts',
    find: 'const against = known ?? (await this.#nobody);',
    replace: 'if (known === undefined) return false;\n    const against = known;',
    specs: 'gateway/auth/password',
  },
  {
    name: 'take a code of an authenticator twice',
    file: 'gateway/auth/totp.ts',
    find: '&& step > lastStep) found = step;',
    replace: ') found = step;',
    specs: 'gateway/auth/totp',
  },
  {
    name: 'keep the key of a person who was erased',
    file: 'services/adapters/vault/file.ts',
    find: 'await rm(key, { force: true });',
    replace: '',
    specs: 'services/adapters/vault',
  },
  {
    name: 'make operators of those who have one factor',
    file: 'gateway/auth/directory.ts',
    find: "&& twoFactors ? staff : 'owner'",
    replace: "? staff : 'owner'",
    specs: SIGN_IN,
  },
  {
    name: 'go on with sessions of an old password',
    file: 'gateway/auth/directory.ts',
    find: 'personId !== undefined && session.epoch === epoch && ',
    replace: 'personId !== undefined && ',
    specs: SIGN_IN,
  },
  {
    name: 'let a key do what no scope names',
    file: 'gateway/auth/actor.ts',
    find: 'if (scope === undefined) throw',
    replace: 'if (scope === undefined) return actor;\n  if (false) throw',
    specs: ACCESS,
  },
  {
    name: "show somebody's wallet to everybody",
    file: 'gateway/graphql/money.ts',
    find: 'assertMayRead(context, accountId);\n    const state =',
    replace: 'const state =',
    specs: ACCESS,
  },
  {
    name: 'let an operator erase an admin',
    file: 'gateway/auth/sign-in.ts',
    find: 'if (appointsStaff(actor) || !(await',
    replace: 'if (isStaff(actor) || !(await',
    specs: SIGN_IN,
  },
  {
    name: 'give tokens to whoever registers somebody else',
    file: 'gateway/auth/sign-in.ts',
    find: 'if (actor === by) return { accountId };',
    replace: '',
    specs: SIGN_IN,
  },
  {
    name: 'leave memberships to whoever comes after an erased person',
    ...ACCOUNTS,
    find: 'totp: false, joined: [], epoch',
    replace: 'totp: false, epoch',
  },
  {
    name: 'make somebody a member of any number of organisations',
    ...ACCOUNTS,
    find: 'if (joined.length < ORGANISATIONS_MAX) return;',
    replace: 'return;',
  },
  {
    name: 'remember every key there ever was',
    ...ACCOUNTS,
    find: 'if (revoked.length <= REVOKED_KEPT) return keys;',
    replace: 'if (revoked.length >= 0) return keys;',
  },
  {
    name: 'see the first page of an account alone',
    file: 'gateway/auth/directory.ts',
    find: 'if (page.length === 0) break;',
    replace: 'break;',
    specs: 'gateway/grpc/play.spec',
  },
  {
    name: 'link an identity for a session that is over',
    file: 'gateway/auth/oidc.ts',
    find: 'if (!(await directory.isOpen(',
    replace: 'if (false && !(await directory.isOpen(',
    specs: 'gateway/auth/oidc.spec',
  },
  {
    name: 'change people at two gateways at once',
    file: 'ops/embedded/identity.ts',
    find: "await held.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [name]);",
    replace: 'void held;',
    specs: SIGN_IN,
  },
  {
    name: 'let a session be refreshed without end',
    ...SESSIONS,
    find: 'if (state.spent.length >= REFRESHES_MAX) throw over();',
    replace: '',
  },
  {
    name: 'let people call themselves anything',
    file: 'gateway/content.ts',
    find: "  EnrolPerson: { accountId: 'name' },\n",
    replace: '',
    specs: 'gateway/content.spec',
  },
  {
    name: 'give a key to the log to whoever knows a password',
    file: 'services/accounts/commands.ts',
    specs: 'services/accounts',
    find: "data.scopes.includes('log') ? isStaff(actor) : ",
    replace: '',
  },
];
