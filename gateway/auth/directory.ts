import { type AccountEvent, type AccountState, accountDecider, STAFF } from '../../services/accounts/index.js';
import type {
  Actor,
  DomainEvent,
  EventStore,
  MemberRole,
  RecordedEvent,
  Upcaster,
} from '../../services/kernel/index.js';
import { type SessionEvent, type SessionState, sessionDecider } from '../../services/sessions/index.js';
import type { Claims } from './tokens.js';

const CACHED_MAX = 20_000;

interface Fold<State> {
  state: State;
  revision: number;
}

/** States of streams of one kind, kept; each look reads only what is newer, so that it is never behind the log. */
class Folds<State, Event extends DomainEvent> {
  readonly #known = new Map<string, Fold<State>>();

  constructor(
    private readonly store: Pick<EventStore, 'readStream'>,
    private readonly upcast: Upcaster,
    private readonly decider: { initial: State; evolve(state: State, event: Event): State },
  ) {}

  async of(stream: string): Promise<State> {
    const from = this.#known.get(stream) ?? { state: this.decider.initial, revision: -1 };
    let { state, revision } = from;
    for (;;) {
      const page: readonly RecordedEvent[] = await this.store.readStream(stream, { fromRevision: revision + 1 });
      for (const event of page) {
        state = this.decider.evolve(state, this.upcast(event) as unknown as Event);
        ({ revision } = event);
      }
      if (page.length === 0) break;
    }
    if (revision >= 0) this.#keep(stream, { state, revision });
    return state;
  }

  #keep(stream: string, fold: Fold<State>): void {
    this.#known.delete(stream);
    this.#known.set(stream, fold);
    if (this.#known.size > CACHED_MAX) this.#known.delete(this.#known.keys().next().value as string);
  }
}

const NAME = /^[a-z0-9-]{1,39}$/;
const SESSION = /^[0-9a-f]{32}$/;

/** Who is who, by the log itself: a role, a key or a session that ended a moment ago opens nothing any more. */
export class Directory {
  readonly #accounts: Folds<AccountState, AccountEvent>;
  readonly #sessions: Folds<SessionState, SessionEvent>;

  constructor(store: Pick<EventStore, 'readStream'>, upcast: Upcaster) {
    this.#accounts = new Folds(store, upcast, accountDecider);
    this.#sessions = new Folds(store, upcast, sessionDecider);
  }

  account(accountId: string): Promise<AccountState> {
    return NAME.test(accountId) ? this.#accounts.of(`account-${accountId}`) : Promise.resolve(accountDecider.initial);
  }

  session(sessionId: string): Promise<SessionState> {
    return SESSION.test(sessionId) ? this.#sessions.of(`session-${sessionId}`) : Promise.resolve(undefined);
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
