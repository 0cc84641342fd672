import { createHash, randomBytes } from 'node:crypto';
import {
  appointsStaff,
  ChangePassword,
  DisableTotp,
  EnableTotp,
  EnrolPerson,
  ErasePerson,
  type Person,
  RefuseSignIn,
  RemoveMember,
  RevokeApiKey,
  STAFF,
} from '../../services/accounts/index.js';
import {
  type Actor,
  AgonError,
  type Command,
  derivedId,
  isStaff,
  newMeta,
  type Rate,
  SYSTEM,
} from '../../services/kernel/index.js';
import { EndSession, type Method, OpenSession, RefreshSession } from '../../services/sessions/index.js';
import { callerAt } from '../caller.js';
import type { IdentityPorts } from './identity.js';
import { assertPassword } from './password.js';
import { ACCESS_S, type Claims } from './tokens.js';
import { newTotpSecret, stepOf, totpUri } from './totp.js';

const SESSION_MS = 30 * 24 * 3_600_000;
/** How long after signing in a session alone proves that its holder is there. */
const FRESH_MS = 600_000;
const REFRESH = /^agonr_([0-9a-f]{32})_([0-9a-f]{64})$/;

/** Guessing is slow: for one caller at one account, for everybody at one account, and slowest for six digits. */
const RATE_OF_GUESSES: Rate = { perMinute: 5, burst: 10 };
const RATE_OF_ACCOUNT: Rate = { perMinute: 30, burst: 60 };
const RATE_OF_CODES: Rate = { perMinute: 1, burst: 10 };

/** What whoever signs in takes along. */
export interface SignedIn {
  readonly accountId: string;
  readonly accessToken: string;
  readonly tokenType: 'Bearer';
  readonly expiresInS: number;
  readonly refreshToken: string;
}

export interface Credentials {
  readonly accountId: string;
  readonly password: string;
  readonly totp?: string | undefined;
}

const owner = (accountId: string): Actor => ({ id: accountId, role: 'owner' });
const hashOf = (secret: string) => createHash('sha256').update(secret).digest('hex');

/** Signing in and out, and what proves who somebody is. */
export class SignIn {
  constructor(private readonly ports: IdentityPorts) {}

  /**
   * Takes a free name. Staff may let somebody in to an account that is there and nobody's; signing in is left to that
   * person, so whoever does it for somebody else gets no tokens.
   */
  async register(
    { accountId, password, ...rest }: Credentials & Pick<Person, 'name' | 'email'>,
    { by, key, address }: { by: Actor | undefined; key?: string | undefined; address: string },
  ): Promise<SignedIn | Pick<SignedIn, 'accountId'>> {
    const { ids, passwords, alone } = this.ports;
    const actor = by && isStaff(by) ? by : owner(accountId);
    this.assertOpen(accountId, actor);
    assertPassword(password, accountId);
    if (isStaff(actor)) await this.assertAbove(actor, accountId);
    else if (key === undefined) await this.assertFree(accountId);
    const personId = key === undefined ? ids() : derivedId('person', actor.id, accountId, key);
    const passwordHash = await passwords.hash(password);
    const { name, email } = rest;
    const about = { ...(name ? { name } : {}), ...(email ? { email } : {}) };
    const isThere = await alone(`person:${accountId}`, async () => {
      if ((await this.ports.directory.account(accountId)).personId === personId) return true;
      if (!isStaff(actor)) await this.assertFree(accountId);
      await this.enrol({ accountId, ...about, passwordHash, identities: [] }, actor, personId);
      return false;
    });
    if (actor === by) return { accountId };
    // Sent again because the answer was lost. Whoever it is has to know what it takes to come in.
    return isThere ? this.login({ accountId, password }, address) : this.open(accountId, ['pwd']);
  }

  /** What is personal is written first, under an id that means nothing until the log names it. */
  async enrol(person: Person, actor: Actor, personId = this.ports.ids()): Promise<string> {
    const { vault } = this.ports;
    const { accountId } = person;
    await vault.write(personId, person);
    try {
      await this.send(EnrolPerson, { accountId, personId }, actor);
      return personId;
    } catch (error) {
      await vault.erase(personId);
      throw error;
    }
  }

  async login({ accountId, password, totp }: Credentials, address: string): Promise<SignedIn> {
    await this.slowly(accountId, address);
    const found = await this.found(accountId);
    const matches = await this.ports.passwords.matches(found?.person.passwordHash, password);
    if (!found || !matches) {
      if (found) this.refused(accountId, 'password');
      throw new AgonError('AUTH.BAD_CREDENTIALS', 'There is no such account, or this is not its password.');
    }
    const { passwordHash = '' } = found.person;
    if (this.ports.passwords.isOld(passwordHash)) {
      const fresh = await this.ports.passwords.hash(password);
      await this.change(accountId, (person) => ({ ...person, passwordHash: fresh }));
    }
    return this.open(accountId, ['pwd', ...(await this.secondFactor(accountId, totp))]);
  }

  /** The second factor, where there is one: a code is asked for, and is good once. */
  async secondFactor(accountId: string, code: string | undefined): Promise<readonly Method[]> {
    const found = await this.found(accountId);
    if (!found?.person.totp?.confirmed) return [];
    if (!code)
      throw new AgonError('AUTH.TOTP_REQUIRED', 'This account asks for a code from its authenticator as well.');
    await this.code(accountId, code);
    return ['otp'];
  }

  async open(accountId: string, methods: readonly Method[]): Promise<SignedIn> {
    const { epoch } = await this.ports.directory.account(accountId);
    const sessionId = randomBytes(16).toString('hex');
    const { text, tokenHash } = refreshToken(sessionId);
    const expiresAt = new Date(this.nowMs() + SESSION_MS).toISOString();
    const data = { sessionId, accountId, epoch, methods: [...methods], tokenHash, expiresAt };
    await this.send(OpenSession, data, owner(accountId));
    return this.signedIn(accountId, sessionId, methods, text);
  }

  async refresh(given: string): Promise<SignedIn> {
    const { directory } = this.ports;
    const [, sessionId = '', secret = ''] = REFRESH.exec(given) ?? [];
    const session = await directory.session(sessionId);
    if (!session || !(await directory.isOpen(sessionId, session.accountId, this.nowMs()))) {
      throw new AgonError('AUTH.SESSION_OVER', 'This session is over, or never was. Sign in again.');
    }
    const { accountId, methods } = session;
    const { text, tokenHash: nextHash } = refreshToken(sessionId);
    const data = { sessionId, accountId, tokenHash: hashOf(secret), nextHash };
    const { events } = await this.send(RefreshSession, data, owner(accountId));
    if (events.some(({ type }) => type === 'SessionEnded')) {
      throw new AgonError(
        'AUTH.TOKEN_REUSED',
        'This refresh token was used before, so somebody else may have it. The session has ended: sign in again.',
      );
    }
    return this.signedIn(accountId, sessionId, methods, text);
  }

  async logout({ accountId, sessionId }: Pick<Claims, 'accountId' | 'sessionId'>): Promise<void> {
    await this.send(EndSession, { sessionId, accountId }, owner(accountId));
  }

  /** Ends the session that a refresh token belongs to; a token that is none ends nothing, and is not told so. */
  async logoutBy(given: string): Promise<void> {
    const [, sessionId = '', secret = ''] = REFRESH.exec(given) ?? [];
    const session = await this.ports.directory.session(sessionId);
    if (session?.tokenHash === hashOf(secret)) await this.logout({ accountId: session.accountId, sessionId });
  }

  /** Every session ends with the old password; the one that asked goes on in a new one. */
  async changePassword({ accountId, methods }: Claims, newPassword: string): Promise<SignedIn> {
    assertPassword(newPassword, accountId);
    const passwordHash = await this.ports.passwords.hash(newPassword);
    const { personId } = await this.person(accountId);
    // In this order a crash in between leaves the old password and no session, never a stranger's session.
    await this.send(ChangePassword, { accountId, personId }, owner(accountId));
    await this.change(accountId, (person) => ({ ...person, passwordHash }));
    return this.open(accountId, methods as Method[]);
  }

  /** A new secret for an authenticator. It is asked for once a first code has shown that it arrived. */
  async beginTotp(accountId: string): Promise<{ secret: string; uri: string }> {
    const secret = newTotpSecret();
    await this.change(accountId, (person) => {
      if (person.totp?.confirmed) {
        throw new AgonError('AUTH.TOTP_ON', 'There is an authenticator already. Remove it first.');
      }
      return { ...person, totp: { secret, confirmed: false, lastStep: 0 } };
    });
    return { secret, uri: totpUri(secret, accountId) };
  }

  async confirmTotp({ accountId, sessionId, methods }: Claims, code: string): Promise<SignedIn> {
    await this.code(accountId, code);
    const { personId } = await this.person(accountId);
    await this.send(EnableTotp, { accountId, personId }, owner(accountId));
    await this.change(accountId, (person) => {
      return person.totp ? { ...person, totp: { ...person.totp, confirmed: true } } : person;
    });
    await this.logout({ accountId, sessionId });
    return this.open(accountId, [...new Set([...(methods as Method[]), 'otp' as const])]);
  }

  async removeTotp(accountId: string, code: string): Promise<void> {
    await this.code(accountId, code);
    const { personId } = await this.person(accountId);
    await this.send(DisableTotp, { accountId, personId }, owner(accountId));
    await this.change(accountId, ({ totp: _gone, ...person }) => person);
  }

  /** Destroys what is personal, then says so. The account's name stays in the log, and opens nothing any more. */
  async erase(accountId: string, actor: Actor): Promise<void> {
    if (actor.id !== accountId) await this.assertAbove(actor, accountId);
    const { personId, keys, joined } = await this.ports.directory.account(accountId);
    for (const { keyId } of Object.values(keys).filter(({ revoked }) => !revoked)) {
      await this.send(RevokeApiKey, { accountId, keyId, reason: 'erased' }, actor);
    }
    // Whoever is let in to this account one day is somebody else, and acts for nobody whom this person acted for.
    for (const organisationId of new Set([STAFF, ...joined])) {
      const { members } = await this.ports.directory.account(organisationId);
      if (members[accountId]) await this.send(RemoveMember, { accountId: organisationId, memberId: accountId }, SYSTEM);
    }
    if (personId === undefined) return;
    await this.ports.vault.erase(personId);
    await this.send(ErasePerson, { accountId, personId }, actor);
  }

  /** That whoever holds the session also knows the password; without one, that somebody signed in just now. */
  async proven({ accountId, sessionId }: Claims, password: string, address: string): Promise<void> {
    const { person } = await this.person(accountId);
    if (person.passwordHash === undefined) return this.assertFresh(sessionId);
    await this.slowly(accountId, address);
    if (await this.ports.passwords.matches(person.passwordHash, password)) return;
    this.refused(accountId, 'password');
    throw new AgonError('AUTH.BAD_CREDENTIALS', 'This is not the password of this account.');
  }

  private async assertFresh(sessionId: string): Promise<void> {
    const session = await this.ports.directory.session(sessionId);
    const openedMs = session ? Date.parse(session.expiresAt) - SESSION_MS : 0;
    if (this.nowMs() - openedMs <= FRESH_MS) return;
    throw new AgonError('AUTH.STALE_SESSION', 'This is for whoever signed in a few minutes ago. Sign in again.');
  }

  /** Operators decide nothing about those who are staff themselves: they would appoint themselves to what they are not. */
  private async assertAbove(actor: Actor, accountId: string): Promise<void> {
    if (appointsStaff(actor) || !(await this.ports.directory.isOfStaff(accountId))) return;
    throw new AgonError('AUTH.FORBIDDEN', `${accountId} is staff, and ${actor.role} ${actor.id} appoints nobody.`);
  }

  assertOpen(accountId: string, actor: Actor): void {
    const { registration, houseAccounts } = this.ports;
    if (houseAccounts.includes(accountId)) {
      throw new AgonError('ACCOUNTS.RESERVED', `The name ${accountId} is the house's. Choose another.`);
    }
    if (registration || isStaff(actor)) return;
    throw new AgonError('AUTH.CLOSED', 'This arena takes no new accounts by itself. Ask its operator for one.');
  }

  send<Data>(make: new (data: Data, meta: Command['meta']) => Command, data: Data, actor: Actor) {
    const { ids, clock, execute } = this.ports;
    return execute(new make(data, newMeta(actor, { id: ids(), clock })));
  }

  private async signedIn(
    accountId: string,
    sessionId: string,
    methods: readonly string[],
    text: string,
  ): Promise<SignedIn> {
    const accessToken = await this.ports.tokens.sign({ accountId, sessionId, methods });
    return { accountId, accessToken, tokenType: 'Bearer', expiresInS: ACCESS_S, refreshToken: text };
  }

  private async assertFree(accountId: string): Promise<void> {
    if (!(await this.ports.directory.account(accountId)).registered) return;
    throw new AgonError('ACCOUNTS.TAKEN', `The name ${accountId} is taken. Choose another.`);
  }

  private async found(accountId: string): Promise<{ personId: string; person: Person } | undefined> {
    const { personId } = await this.ports.directory.account(accountId);
    const person = personId === undefined ? undefined : await this.ports.vault.read(personId);
    return personId !== undefined && person ? { personId, person } : undefined;
  }

  async person(accountId: string): Promise<{ personId: string; person: Person }> {
    const found = await this.found(accountId);
    if (found) return found;
    throw new AgonError('ACCOUNTS.NO_PERSON', `Nobody signs in to ${accountId}.`);
  }

  /** One change at a time for each account, at all gateways, so that none is lost and no code is taken twice. */
  change(accountId: string, how: (person: Person) => Person): Promise<string> {
    return this.ports.alone(`person:${accountId}`, async () => {
      const { personId, person } = await this.person(accountId);
      await this.ports.vault.write(personId, how(person));
      return personId;
    });
  }

  private async code(accountId: string, code: string): Promise<void> {
    await this.take(`totp:${accountId}`, RATE_OF_CODES, accountId);
    await this.change(accountId, (person) => {
      const { totp } = person;
      const lastStep = totp && stepOf(code, totp.secret, this.nowMs(), totp.lastStep);
      if (totp && lastStep !== undefined) return { ...person, totp: { ...totp, lastStep } };
      this.refused(accountId, 'totp');
      throw new AgonError('AUTH.BAD_TOTP', 'This code is wrong, too old, or was used before. Wait for the next one.');
    });
  }

  private async slowly(accountId: string, address: string): Promise<void> {
    const name = hashOf(accountId).slice(0, 32);
    await this.take(`guess:${name}:${callerAt(address)}`, RATE_OF_GUESSES, 'one address');
    await this.take(`guess:${name}`, RATE_OF_ACCOUNT, 'one account');
  }

  private async take(name: string, rate: Rate, who: string): Promise<void> {
    const taken = await this.ports.limits.take(name, rate);
    if (taken.ok) return;
    const { retryAfterMs } = taken;
    const seconds = Math.ceil(retryAfterMs / 1000);
    throw new AgonError('LIMITS.EXCEEDED', `Too many attempts for ${who}. Try again in ${seconds} s.`, {
      retryAfterMs,
    });
  }

  /** Nobody waits for it: an answer that takes longer where there is an account would tell that there is one. */
  private refused(accountId: string, factor: 'password' | 'totp'): void {
    this.send(RefuseSignIn, { accountId, factor }, SYSTEM).catch(this.ports.onInternalError);
  }

  private nowMs(): number {
    return Date.parse(this.ports.clock());
  }
}

function refreshToken(sessionId: string): { text: string; tokenHash: string } {
  const secret = randomBytes(32).toString('hex');
  return { text: `agonr_${sessionId}_${secret}`, tokenHash: hashOf(secret) };
}
