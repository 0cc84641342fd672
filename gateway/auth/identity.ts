import type { KeyScope, Vault } from '../../services/accounts/index.js';
import type { Actor, Clock, Command, Handled, Ids, RateLimits } from '../../services/kernel/index.js';
import { bearerOfKey } from './api-key.js';
import type { Directory } from './directory.js';
import { Oidc, type OidcOptions } from './oidc.js';
import type { Passwords } from './password.js';
import { SignIn } from './sign-in.js';
import type { Claims, Tokens } from './tokens.js';

/** What knowing people takes. */
export interface IdentityPorts {
  readonly vault: Vault;
  readonly directory: Directory;
  readonly tokens: Tokens;
  readonly passwords: Passwords;
  readonly limits: RateLimits;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Whether people may make accounts by themselves. */
  readonly registration: boolean;
  readonly houseAccounts: readonly string[];
  /** Does this while nobody else does anything under the same name, at no gateway of the arena. */
  alone<T>(name: string, work: () => Promise<T>): Promise<T>;
  execute(command: Command): Promise<Handled>;
  onInternalError(error: unknown): void;
}

/** Who is behind a token, and how far it goes. */
export interface Bearer {
  readonly actor: Actor;
  /** Of a person who signed in. */
  readonly claims?: Claims;
  /** Of an API key, which may do less than its owner. */
  readonly key?: ApiKeyOf;
}

export interface ApiKeyOf {
  readonly keyId: string;
  readonly scopes: readonly KeyScope[];
  readonly agents: readonly string[] | undefined;
}

const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/** The one who knows who is who. */
export class Identities {
  readonly signIn: SignIn;
  readonly oidc: Oidc;

  constructor(
    readonly ports: IdentityPorts,
    oidc?: OidcOptions,
  ) {
    this.signIn = new SignIn(ports);
    this.oidc = new Oidc(ports, this.signIn, oidc);
  }

  /** Whom an API key or an access token speaks for, at this moment. */
  async bearerOf(token: string): Promise<Bearer | undefined> {
    const { directory, tokens, clock } = this.ports;
    const byKey = await bearerOfKey(directory, token);
    if (byKey) return byKey;
    const claims = JWT.test(token) ? await tokens.verify(token) : undefined;
    if (!claims || !(await directory.isOpen(claims.sessionId, claims.accountId, Date.parse(clock())))) return undefined;
    return { actor: await directory.actorOf(claims), claims };
  }
}
