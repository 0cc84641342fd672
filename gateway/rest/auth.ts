import { z } from 'zod';
import { keyScopes } from '../../services/accounts/index.js';
import { AgonError, isStaff, memberRoles, readable, roles, slug, text } from '../../services/kernel/index.js';
import { actorIn, type RequestContext } from '../auth/actor.js';
import type { Claims } from '../auth/tokens.js';
import { type Answer, type Asked, defineRoute, type RestContext, type RouteDefinition, type Shape } from './route.js';
import { accountId, name } from './schemas.js';

const password = z.string().min(1).max(1_024);
const proof = password.optional().describe('The password, where there is one.');
const code = z.string().regex(/^\d{6}$/, 'must be 6 digits');
const totp = code.optional().describe('A code of the authenticator, where there is one.');
const token = z.string().max(4_096);
const issuer = z.string().min(1).max(500).describe('Who vouches.');

const SignedIn = name(
  'SignedIn',
  z.strictObject({
    accountId,
    accessToken: z.string().describe('For the Authorization header, as a bearer token.'),
    tokenType: z.literal('Bearer'),
    expiresInS: z.int(),
    refreshToken: z.string().describe('Good once, for the next tokens.'),
  }),
);
const Registered = name('Registered', z.union([SignedIn, z.strictObject({ accountId })]));
const Me = name(
  'Me',
  z.strictObject({
    accountId: z.string(),
    role: z.enum(roles),
    memberOf: z.record(z.string(), z.enum(memberRoles)),
    totp: z.boolean(),
    name: z.string().nullable(),
    email: z.string().nullable(),
    identities: z.array(z.string()).describe('Who vouches for this person.'),
    key: z
      .strictObject({
        keyId: z.string(),
        scopes: z.array(z.enum(keyScopes)),
        agents: z.array(z.string()).optional(),
      })
      .nullable()
      .describe('Of an API key: what it may do.'),
  }),
);
const Jwks = name('Jwks', z.strictObject({ keys: z.array(z.record(z.string(), z.string())) }));

const signedIn: Answer = { description: 'Tokens.', schema: SignedIn };
const nothing: Answer = { status: 204, description: 'It is done.', type: 'none' };

/** A person's own doing: nothing of it is kept in between, and tokens and proofs are good once whatever key is sent. */
const auth = <P extends Shape, Q extends Shape, B extends z.ZodType>(
  route: Omit<RouteDefinition<P, Q, B>, 'path'> & { readonly at: string },
): RouteDefinition => {
  const { at, method = 'POST', handle, ...rest } = route;
  return defineRoute<P, Q, B>({
    keyed: false,
    ...rest,
    method,
    path: `/v1/auth/${at}`,
    handle: (asked, rest) => {
      asked.reply.header('cache-control', 'no-store');
      return handle(asked, rest);
    },
  });
};

const claimsOf = async ({ context }: Pick<Asked, 'context'>): Promise<Claims> => claimsIn(await context());

/** Signing in and out. Nothing here sets a cookie: whoever signs in keeps the tokens. */
export const authRoutes: readonly RouteDefinition[] = [
  auth({
    id: 'register',
    at: 'register',
    access: 'public',
    keyed: true,
    summary: "Takes a free name. With the token of staff, lets somebody in to an account that is nobody's.",
    body: name(
      'Registration',
      z.strictObject({
        accountId,
        password,
        name: text(200).optional(),
        email: readable(
          z
            .string()
            .max(254)
            .regex(/^[^@\s]+@[^@\s]+$/, 'must be an e-mail address'),
        ).optional(),
      }),
    ),
    answer: { status: 201, description: 'Tokens; none for what was made for somebody else.', schema: Registered },
    refuses: [401, 403, 409, 422],
    handle: async ({ body, context, request }, { ports }) => {
      const { actor: by, idempotencyKey: key } = await context();
      return ports.identities.signIn.register(body, { by, key, address: request.ip });
    },
  }),
  auth({
    id: 'login',
    at: 'login',
    access: 'public',
    summary: 'Opens a session.',
    // A name that nobody can have is answered like one that nobody has.
    body: name('Login', z.strictObject({ accountId: z.string().max(200), password, totp })),
    answer: signedIn,
    refuses: [401],
    handle: ({ body, request }, { ports }) => ports.identities.signIn.login(body, request.ip),
  }),
  auth({
    id: 'refresh',
    at: 'refresh',
    access: 'public',
    summary: 'Trades a refresh token for new tokens. One that comes twice ends its session.',
    body: name('Refresh', z.strictObject({ refreshToken: token })),
    answer: signedIn,
    refuses: [401],
    handle: ({ body }, { ports }) => ports.identities.signIn.refresh(body.refreshToken),
  }),
  auth({
    id: 'logout',
    at: 'logout',
    access: 'public',
    summary: 'Ends a session: that of a refresh token, or that of the access token it is asked with.',
    body: name('Logout', z.strictObject({ refreshToken: token.optional() })).optional(),
    answer: nothing,
    refuses: [401, 403],
    handle: async (asked, { ports }) => {
      const { signIn } = ports.identities;
      if (asked.body?.refreshToken === undefined) await signIn.logout(await claimsOf(asked));
      else await signIn.logoutBy(asked.body.refreshToken);
    },
  }),
  auth({
    id: 'changePassword',
    at: 'password',
    summary: 'Changes the password. Every other session ends.',
    body: name('PasswordChange', z.strictObject({ password: proof, newPassword: password })),
    answer: signedIn,
    refuses: [422],
    handle: async (asked, { ports }) => {
      const claims = await proven(asked, ports);
      return ports.identities.signIn.changePassword(claims, asked.body.newPassword);
    },
  }),
  auth({
    id: 'beginTotp',
    at: 'totp',
    summary: 'A secret for an authenticator. It is asked for once a first code was given.',
    body: name('TotpBegin', z.strictObject({ password: proof })).optional(),
    answer: {
      description: 'Shown this once.',
      schema: name('TotpSecret', z.strictObject({ secret: z.string(), uri: z.string() })),
    },
    refuses: [409],
    handle: async (asked, { ports }) => {
      const { accountId: whose } = await proven(asked, ports);
      return ports.identities.signIn.beginTotp(whose);
    },
  }),
  auth({
    id: 'confirmTotp',
    at: 'totp/confirm',
    summary: 'Asks for a code of the authenticator from now on.',
    body: name('TotpConfirm', z.strictObject({ code })),
    answer: signedIn,
    refuses: [409],
    handle: async (asked, { ports }) => ports.identities.signIn.confirmTotp(await claimsOf(asked), asked.body.code),
  }),
  auth({
    id: 'removeTotp',
    at: 'totp/remove',
    summary: 'Asks for no code any more.',
    body: name('TotpRemove', z.strictObject({ password: proof, code })),
    answer: nothing,
    refuses: [409],
    handle: async (asked, { ports }) => {
      const { accountId: whose } = await proven(asked, ports);
      await ports.identities.signIn.removeTotp(whose, asked.body.code);
    },
  }),
  auth({
    id: 'erase',
    at: 'erase',
    summary: "Destroys what is personal: one's own, or by staff that of somebody who asked for it.",
    body: name('Erasure', z.strictObject({ password: proof, accountId: accountId.optional() })),
    answer: nothing,
    refuses: [409],
    handle: async (asked, { ports }) => {
      const { signIn } = ports.identities;
      const actor = actorIn(await asked.context(), 'ErasePerson');
      const { accountId: whose = actor.id } = asked.body;
      if (whose !== actor.id && !isStaff(actor)) {
        throw new AgonError('AUTH.FORBIDDEN', `${actor.id} may not erase what belongs to ${whose}.`);
      }
      if (whose === actor.id) await proven(asked, ports);
      await signIn.erase(whose, actor);
    },
  }),
  auth({
    id: 'getMe',
    at: 'me',
    method: 'GET',
    summary: 'Who is asking.',
    answer: { description: 'What the token in hand stands for.', schema: Me },
    handle: async ({ context }, { ports }) => {
      const { claims, key, ...known } = await context();
      const { id, role, memberOf = {} } = actorIn(known, 'read');
      const { directory, vault } = ports.identities.ports;
      const { personId, totp: on } = await directory.account(id);
      const person = claims && personId !== undefined ? await vault.read(personId) : undefined;
      const { name: called = null, email = null, identities = [] } = person ?? {};
      const about = { name: called, email, identities: identities.map((each) => each.issuer) };
      return { accountId: id, role, memberOf, totp: on, ...about, key: key ?? null };
    },
  }),
  auth({
    id: 'beginOidc',
    at: 'oidc/begin',
    access: 'public',
    summary: 'Begins to sign in by an identity provider, or, for whoever has signed in, to link an identity.',
    body: name(
      'OidcBegin',
      z.strictObject({
        redirectUri: z.url().max(2_048),
        accountId: slug.optional().describe('The name to take, should nobody be known by the identity.'),
        password: proof,
      }),
    ),
    answer: {
      description: 'Where to send the browser, and what to keep until it comes back.',
      schema: name('OidcFlow', z.strictObject({ url: z.string(), flow: z.string() })),
    },
    refuses: [401, 403],
    handle: async (asked, { ports }) => {
      const { authorization } = asked.request.headers;
      const link = authorization === undefined ? undefined : await proven(asked, ports);
      const { redirectUri, accountId: taken } = asked.body;
      return ports.identities.oidc.begin({ redirectUri, accountId: taken, link });
    },
  }),
  auth({
    id: 'finishOidc',
    at: 'oidc/finish',
    access: 'public',
    summary: 'Signs in, registers or links by what the identity provider said.',
    body: name('OidcFinish', z.strictObject({ flow: token, callbackUrl: z.url().max(8_192), totp })),
    answer: signedIn,
    refuses: [401, 403, 409, 422],
    handle: ({ body }, { ports }) => ports.identities.oidc.finish(body),
  }),
  auth({
    id: 'unlinkOidc',
    at: 'oidc/unlink',
    summary: 'Takes back an identity that was linked. Every other session ends.',
    body: name('OidcUnlink', z.strictObject({ issuer, password: proof, totp })),
    answer: signedIn,
    refuses: [409],
    handle: async (asked, { ports }) => ports.identities.oidc.unlink(await proven(asked, ports), asked.body),
  }),
  defineRoute({
    id: 'getJwks',
    path: '/.well-known/jwks.json',
    access: 'public',
    summary: 'The public keys of access tokens.',
    answer: { description: 'A JSON Web Key Set.', schema: Jwks },
    handle: ({ reply }, { ports }) => {
      reply.header('cache-control', 'public, max-age=60');
      return ports.identities.ports.tokens.jwks();
    },
  }),
];

/** Whoever has signed in, and has proven to be there now. */
async function proven(
  asked: Pick<Asked, 'context' | 'request'> & {
    readonly body?: { readonly password?: string | undefined } | undefined;
  },
  { identities }: Pick<RestContext['ports'], 'identities'>,
): Promise<Claims> {
  const claims = await claimsOf(asked);
  await identities.signIn.proven(claims, asked.body?.password ?? '', asked.request.ip);
  return claims;
}

function claimsIn(context: RequestContext): Claims {
  if (context.claims) return context.claims;
  actorIn({ ...context, key: undefined }, 'read');
  throw new AgonError('AUTH.FORBIDDEN', 'This is for somebody who has signed in, not for a key or a machine.');
}
