import * as client from 'openid-client';
import { z } from 'zod';
import { type Identity, LinkIdentity, UnlinkIdentity } from '../../services/accounts/index.js';
import { AgonError } from '../../services/kernel/index.js';
import type { Method } from '../../services/sessions/index.js';
import type { IdentityPorts } from './identity.js';
import type { SignedIn, SignIn } from './sign-in.js';
import type { Claims } from './tokens.js';

/** Who vouches for people here. */
export interface OidcOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** Pages that may be returned to, beside loopback: those of these origins. */
  readonly origins: readonly string[];
}

const flowSchema = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  redirectUri: z.string(),
  accountId: z.string().optional(),
  /** The account to add the identity to, and the session that asked for it. */
  link: z.object({ accountId: z.string(), sessionId: z.string() }).optional(),
});
type Flow = z.output<typeof flowSchema>;

/**
 * Signing in by another's word: OpenID Connect's authorisation code with PKCE. What has to be remembered between the two
 * steps goes to the caller and comes back, sealed: so it belongs to the very client that began, any gateway can finish,
 * and there is no cookie.
 */
export class Oidc {
  private provider: Promise<client.Configuration> | undefined;

  constructor(
    private readonly ports: IdentityPorts,
    private readonly signIn: SignIn,
    private readonly options: OidcOptions | undefined,
  ) {}

  async begin(asked: {
    redirectUri: string;
    /** The name to take, should nobody be known by this identity. */
    accountId?: string | undefined;
    /** Who adds the identity to their account, and has proven to be there. */
    link?: Pick<Claims, 'accountId' | 'sessionId'> | undefined;
  }): Promise<{ url: string; flow: string }> {
    const { redirectUri, accountId, link } = asked;
    this.assertRedirect(redirectUri);
    const provider = await this.discovered();
    const verifier = client.randomPKCECodeVerifier();
    const [state, nonce] = [client.randomState(), client.randomNonce()];
    const url = client.buildAuthorizationUrl(provider, {
      redirect_uri: redirectUri,
      scope: 'openid profile email',
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
    const flow: Flow = { state, nonce, verifier, redirectUri, accountId, link };
    return { url: url.href, flow: await this.ports.tokens.wrap(flow) };
  }

  async finish(given: { flow: string; callbackUrl: string; totp?: string | undefined }): Promise<SignedIn> {
    const opened = flowSchema.safeParse(await this.ports.tokens.unwrap(given.flow));
    if (!opened.success) throw new AgonError('AUTH.BAD_FLOW', 'This flow is not ours, or too old. Begin again.');
    const flow = opened.data;
    const proven = flow.link && (await this.assertLinks(flow.link, given.totp));
    const claims = await this.claims(flow, given.callbackUrl);
    const identity = { issuer: claims.iss, subject: claims.sub };
    const accountId = await this.accountOf(identity, flow, claims);
    const factors = proven ?? (await this.signIn.secondFactor(accountId, given.totp));
    return this.signIn.open(accountId, ['oidc', ...factors]);
  }

  /** A way in for good is added by nobody who could not come in now: the session goes on, and the second factor is there. */
  private async assertLinks({ accountId, sessionId }: NonNullable<Flow['link']>, totp: string | undefined) {
    const { directory, clock } = this.ports;
    if (!(await directory.isOpen(sessionId, accountId, Date.parse(clock())))) {
      throw new AgonError('AUTH.BAD_FLOW', 'The session that began this is over. Sign in and begin again.');
    }
    return this.signIn.secondFactor(accountId, totp);
  }

  /** Takes back what was linked. Whoever came in by it is signed out; the session that asked goes on in a new one. */
  async unlink(claims: Claims, given: { issuer: string; totp?: string | undefined }): Promise<SignedIn> {
    const { accountId, methods } = claims;
    const { issuer, totp } = given;
    const { personId, person } = await this.signIn.person(accountId);
    const others = person.identities.filter((each) => each.issuer !== issuer);
    if (others.length === person.identities.length) {
      throw new AgonError('ACCOUNTS.NOT_LINKED', `No identity of ${issuer} is linked to ${accountId}.`);
    }
    if (others.length === 0 && person.passwordHash === undefined) {
      throw new AgonError('AUTH.LAST_WAY_IN', 'Nobody could sign in without this identity. Set a password first.');
    }
    await this.signIn.secondFactor(accountId, totp);
    const actor = { id: accountId, role: 'owner' } as const;
    await this.signIn.send(UnlinkIdentity, { accountId, personId, issuer }, actor);
    await this.signIn.change(accountId, (now) => {
      return { ...now, identities: now.identities.filter((each) => each.issuer !== issuer) };
    });
    return this.signIn.open(accountId, methods as Method[]);
  }

  /** What the provider says, once its signature, audience, nonce, state and our verifier have been found to fit. */
  private async claims(flow: Flow, callbackUrl: string): Promise<client.IDToken> {
    if (!URL.canParse(callbackUrl) || !sameplace(callbackUrl, flow.redirectUri)) {
      throw new AgonError('AUTH.BAD_FLOW', 'This is not the address that the flow was to return to.');
    }
    const provider = await this.discovered();
    try {
      const answer = await client.authorizationCodeGrant(provider, new URL(callbackUrl), {
        pkceCodeVerifier: flow.verifier,
        expectedState: flow.state,
        expectedNonce: flow.nonce,
        idTokenExpected: true,
      });
      const claims = answer.claims();
      if (claims) return claims;
      throw new Error('there is no ID token');
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new AgonError(
        'AUTH.OIDC_REFUSED',
        `The identity provider's answer is not good: ${why}.`,
        {},
        { cause: error },
      );
    }
  }

  private async accountOf(identity: Identity, { accountId, link }: Flow, claims: client.IDToken): Promise<string> {
    const { vault, directory } = this.ports;
    const personId = await vault.find(identity);
    const known = personId === undefined ? undefined : await vault.read(personId);
    if (known && (await directory.account(known.accountId)).personId === personId) {
      if (link === undefined || link.accountId === known.accountId) return known.accountId;
      throw new AgonError('ACCOUNTS.IDENTITY_TAKEN', 'This identity belongs to another account already.');
    }
    return link === undefined ? this.enrol(identity, accountId, claims) : this.link(identity, link.accountId);
  }

  private async enrol(identity: Identity, accountId: string | undefined, claims: client.IDToken): Promise<string> {
    if (accountId === undefined) {
      throw new AgonError(
        'ACCOUNTS.NOT_LINKED',
        'Nobody is known by this identity. Begin again with an accountId to register, or sign in and link it.',
      );
    }
    const actor = { id: accountId, role: 'owner' } as const;
    this.signIn.assertOpen(accountId, actor);
    const text = (value: unknown) => (typeof value === 'string' ? value.slice(0, 254) : undefined);
    const [name, email] = [text(claims.name), text(claims.email)];
    const about = { ...(name ? { name } : {}), ...(email ? { email } : {}) };
    const personId = await this.signIn.enrol({ accountId, ...about, identities: [identity] }, actor);
    await this.signIn.send(LinkIdentity, { accountId, personId, issuer: identity.issuer }, actor);
    return accountId;
  }

  private async link(identity: Identity, accountId: string): Promise<string> {
    const personId = await this.signIn.change(accountId, (person) => {
      return { ...person, identities: [...person.identities, identity] };
    });
    const actor = { id: accountId, role: 'owner' } as const;
    await this.signIn.send(LinkIdentity, { accountId, personId, issuer: identity.issuer }, actor);
    return accountId;
  }

  /** RFC 8252: whoever listens on loopback is on the same machine as the browser. All others have to be named. */
  private assertRedirect(redirectUri: string): void {
    const url = URL.canParse(redirectUri) ? new URL(redirectUri) : undefined;
    const isLoopback = url?.protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
    if (url && (isLoopback || this.options?.origins.includes(url.origin))) return;
    throw new AgonError('AUTH.BAD_REDIRECT', 'This is not an address that people are sent back to from here.');
  }

  private async discovered(): Promise<client.Configuration> {
    const { options } = this;
    if (!options) {
      throw new AgonError(
        'AUTH.NO_PROVIDER',
        'No identity provider is known here. Set AGON_OIDC_ISSUER and AGON_OIDC_CLIENT_ID.',
      );
    }
    const { issuer, clientId, clientSecret } = options;
    // The configuration lets plain HTTP through for this machine alone.
    const plain = new URL(issuer).protocol === 'http:' ? { execute: [client.allowInsecureRequests] } : {};
    this.provider ??= client.discovery(new URL(issuer), clientId, clientSecret, undefined, plain);
    try {
      return await this.provider;
    } catch (error) {
      this.provider = undefined;
      const why = error instanceof Error ? error.message : String(error);
      throw new AgonError('AUTH.PROVIDER_AWAY', `The identity provider does not answer: ${why}.`, {}, { cause: error });
    }
  }
}

const sameplace = (a: string, b: string) =>
  new URL(a).origin === new URL(b).origin && new URL(a).pathname === new URL(b).pathname;
