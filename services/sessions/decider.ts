import { AgonError, type CommandOf, type Decider } from '../kernel/index.js';
import type * as commands from './commands.js';
import type { SessionEvent } from './events.js';

type SessionCommand = CommandOf<typeof commands>;

export interface Session extends Omit<Extract<SessionEvent, { type: 'SessionOpened' }>['data'], 'sessionId'> {
  /**
   * Tokens that were traded in, by the beginnings of their hashes. Whoever shows one of them again has it from somebody
   * else, or somebody else has ours.
   */
  readonly spent: readonly string[];
  readonly ended: string | undefined;
}

export type SessionState = Session | undefined;

/** More than a session of thirty days needs that is refreshed every ten minutes. */
export const REFRESHES_MAX = 5_000;
const markOf = (tokenHash: string) => tokenHash.slice(0, 16);

function evolve(state: SessionState, event: SessionEvent): SessionState {
  switch (event.type) {
    case 'SessionOpened': {
      const { sessionId: _sessionId, ...opened } = event.data;
      return { ...opened, spent: [], ended: undefined };
    }
    case 'SessionRefreshed':
      return state && { ...state, tokenHash: event.data.tokenHash, spent: [...state.spent, markOf(state.tokenHash)] };
    case 'SessionEnded':
      return state && { ...state, ended: event.data.reason };
  }
}

function decide(command: SessionCommand, state: SessionState): SessionEvent[] {
  const { sessionId, accountId } = command.data;
  if (command.type === 'OpenSession') {
    if (state) throw new AgonError('SESSIONS.EXISTS', `There is a session ${sessionId} already.`);
    return [{ type: 'SessionOpened', data: command.data }];
  }
  if (state?.accountId !== accountId) throw over();
  if (command.type === 'EndSession') {
    return state.ended ? [] : [{ type: 'SessionEnded', data: { sessionId, accountId, reason: 'signed-out' } }];
  }
  return refresh(command, state);
}

function refresh({ data, meta }: commands.RefreshSession, state: Session): SessionEvent[] {
  const { sessionId, accountId, tokenHash, nextHash } = data;
  if (state.ended || Date.parse(state.expiresAt) <= Date.parse(meta.time)) throw over();
  if (tokenHash === state.tokenHash) {
    // None of them is ever forgotten, or a thief would refresh until the stolen one was; so there is an end to it.
    if (state.spent.length >= REFRESHES_MAX) throw over();
    return [{ type: 'SessionRefreshed', data: { sessionId, accountId, tokenHash: nextHash } }];
  }
  // Of two who hold the same token one is a thief, and nobody can tell which: the session ends for both.
  if (state.spent.includes(markOf(tokenHash))) {
    return [{ type: 'SessionEnded', data: { sessionId, accountId, reason: 'token-reused' } }];
  }
  throw over();
}

const over = () => new AgonError('AUTH.SESSION_OVER', 'This session is over, or never was. Sign in again.');

export const sessionDecider: Decider<SessionState, SessionCommand, SessionEvent> = {
  initial: undefined,
  evolve,
  decide,
};
