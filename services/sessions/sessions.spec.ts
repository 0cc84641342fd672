import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { type Actor, roles } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import { REFRESHES_MAX } from './decider.js';
import { EndSession, OpenSession, RefreshSession, sessions } from './index.js';

const given = specification(sessions);
const session = { sessionId: '0'.repeat(32), accountId: 'ada' };
const hash = (letter: string) => letter.repeat(64);
const data = {
  ...session,
  epoch: 1,
  methods: ['pwd' as const],
  tokenHash: hash('a'),
  expiresAt: '2026-01-31T00:00:00.000Z',
};
const opened = { type: 'SessionOpened', data } as const;
const refreshed = (letter: string) =>
  ({ type: 'SessionRefreshed', data: { ...session, tokenHash: hash(letter) } }) as const;
const ended = (reason: 'signed-out' | 'token-reused') =>
  ({ type: 'SessionEnded', data: { ...session, reason } }) as const;

const at = (time: string) => ({ ...metaOf('c1'), time });
const refresh = (letter: string, time = '2026-01-02T00:00:00.000Z', change = {}) =>
  new RefreshSession({ ...session, tokenHash: hash(letter), nextHash: hash('f'), ...change }, at(time));

describe('a session', () => {
  it('opens once', () => {
    given([])
      .when(new OpenSession(data, metaOf('c1')))
      .then([opened]);
    given([opened])
      .when(new OpenSession(data, metaOf('c1')))
      .thenRefused('SESSIONS.EXISTS');
  });

  it('trades the token in force for the next', () => {
    given([opened])
      .when(refresh('a'))
      .then([refreshed('f')]);
    given([opened, refreshed('b')])
      .when(refresh('b'))
      .then([refreshed('f')]);
  });

  it('ends when a token comes again that was traded, however long ago', () => {
    given([opened, refreshed('b')])
      .when(refresh('a'))
      .then([ended('token-reused')]);
    given([opened, refreshed('b'), refreshed('c')])
      .when(refresh('a'))
      .then([ended('token-reused')]);
    given([opened, refreshed('b'), ended('token-reused')])
      .when(refresh('b'))
      .thenRefused('AUTH.SESSION_OVER');
  });

  it('is over after so many refreshes, having forgotten none of them', () => {
    const hashes = Array.from({ length: REFRESHES_MAX }, (_, i) => i.toString(16).padStart(16, '0') + '0'.repeat(48));
    const many = hashes.map((tokenHash) => ({ type: 'SessionRefreshed', data: { ...session, tokenHash } }) as const);
    const last = { ...session, tokenHash: hashes.at(-1) ?? '', nextHash: hash('f') };
    given([opened, ...many])
      .when(new RefreshSession(last, at('2026-01-02T00:00:00.000Z')))
      .thenRefused('AUTH.SESSION_OVER');
    given([opened, ...many])
      .when(refresh('a'))
      .then([ended('token-reused')]);
  });

  it('is not ended by a token that it never had, and is nobody else’s', () => {
    given([opened]).when(refresh('9')).thenRefused('AUTH.SESSION_OVER');
    given([opened])
      .when(refresh('a', undefined, { accountId: 'eve' }))
      .thenRefused('AUTH.SESSION_OVER');
    given([]).when(refresh('a')).thenRefused('AUTH.SESSION_OVER');
  });

  it('has its time', () => {
    given([opened])
      .when(refresh('a', '2026-01-30T23:59:59.999Z'))
      .then([refreshed('f')]);
    given([opened]).when(refresh('a', data.expiresAt)).thenRefused('AUTH.SESSION_OVER');
  });

  it('ends when somebody signs out, once', () => {
    const end = new EndSession(session, metaOf('c1'));
    given([opened])
      .when(end)
      .then([ended('signed-out')]);
    given([opened, ended('signed-out')])
      .when(end)
      .then([]);
    given([opened, ended('signed-out')])
      .when(refresh('a'))
      .thenRefused('AUTH.SESSION_OVER');
  });

  it.each(roles)('by %s', (role) => {
    const staff = ['operator', 'admin', 'system'].includes(role);
    const commands = (actor: Actor) => [
      new OpenSession(data, metaOf('c1', actor)),
      new RefreshSession({ ...session, tokenHash: hash('a'), nextHash: hash('b') }, metaOf('c1', actor)),
      new EndSession(session, metaOf('c1', actor)),
    ];
    for (const command of commands({ id: 'ada', role })) expect(allowed(command)).toBe(staff || role === 'owner');
    for (const command of commands({ id: 'eve', role })) expect(allowed(command)).toBe(staff);
  });
});
