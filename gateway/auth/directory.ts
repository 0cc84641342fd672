import { type AccountState, accounts, STAFF } from '../../services/accounts/index.js';
import type { Actor, Load, MemberRole } from '../../services/kernel/index.js';
import { type SessionState, sessions } from '../../services/sessions/index.js';
import type { Claims } from './tokens.js';

const NAME = /^[a-z0-9-]{1,39}$/;
const SESSION = /^[0-9a-f]{32}$/;

/** Who is who, by the log itself: a role, a key or a session that ended a moment ago opens nothing any more. */
export class Directory {
  constructor(private readonly load: Load) {}

  async account(accountId: string): Promise<AccountState> {
    if (!NAME.test(accountId)) return accounts.decider.initial;
    return (await this.load(accounts, accountId, 'tail')).state;
  }

  async session(sessionId: string): Promise<SessionState> {
    if (!SESSION.test(sessionId)) return undefined;
    return (await this.load(sessions, sessionId, 'tail')).state;
  }

  /** Whether the session goes on: it was not ended, has time left, and no password was changed since. */
  async isOpen(sessionId: string, accountId: string, nowMs: number): Promise<boolean> {
    const session = await this.session(sessionId);
    if (!session || session.ended || session.accountId !== accountId) return false;
    const { epoch, personId } = await this.account(accountId);
    return personId !== undefined && session.epoch === epoch && Date.parse(session.expiresAt) > nowMs;
  }

  /**
   * What the holder of a token may do at this moment: as a member of what they joined and are still named by. Operators
   * and admins are that only in a session that was opened with a second factor; until then they are owners like all
   * others.
   */
  async actorOf({ accountId, methods }: Claims): Promise<Actor> {
    const { joined } = await this.account(accountId);
    const roles = await Promise.all(joined.map(async (each) => (await this.account(each)).members[accountId]));
    const memberOf: Record<string, MemberRole> = {};
    for (const [i, organisation] of joined.entries()) if (roles[i]) memberOf[organisation] = roles[i];
    const { [STAFF]: staff, ...others } = memberOf;
    const role = roleOf(staff, methods.includes('otp'));
    return { id: accountId, role, ...(Object.keys(others).length > 0 ? { memberOf: others } : {}) };
  }

  /** Whether this account is one of those who run the arena, or is about to be. */
  async isOfStaff(accountId: string): Promise<boolean> {
    return (await this.account(STAFF)).members[accountId] !== undefined;
  }
}

function roleOf(staff: MemberRole | undefined, twoFactors: boolean): Actor['role'] {
  if (staff === 'auditor') return 'auditor';
  return (staff === 'operator' || staff === 'admin') && twoFactors ? staff : 'owner';
}
