import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { type Actor, roles } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import { KEYS_MAX } from './decider.js';
import { type AccountEvent, accounts, IssueApiKey, keysFrom, RegisterOwner, RevokeApiKey } from './index.js';

const given = specification(accounts);
const ada = { accountId: 'ada', displayName: 'Ada Lovelace' };
const register = (data = ada, actor?: Actor) => new RegisterOwner(data, metaOf('c1', actor));
const registered = { type: 'OwnerRegistered', data: ada } as const;

describe('registering an owner', () => {
  it('takes a free name', () => {
    given([]).when(register()).then([registered]);
  });

  it('trims the name that is shown', () => {
    given([])
      .when(register({ ...ada, displayName: '  Ada Lovelace ' }))
      .then([registered]);
  });

  it('refuses a name that is taken, even by the same person', () => {
    given([registered]).when(register()).thenRefused('ACCOUNTS.TAKEN');
    given([registered])
      .when(register({ ...ada, displayName: 'Another Ada' }))
      .thenRefused('ACCOUNTS.TAKEN');
  });

  it('is decided on the stream of the account', () => {
    expect(RegisterOwner.spec.stream(ada)).toBe('account-ada');
  });

  it.each<[string, typeof ada]>([
    ['no id', { ...ada, accountId: '' }],
    ['an id with capitals', { ...ada, accountId: 'Ada' }],
    ['an id with a dot, which separates owner and agent', { ...ada, accountId: 'ada.l' }],
    ['an id too long', { ...ada, accountId: 'a'.repeat(40) }],
    ['no name to show', { ...ada, displayName: '   ' }],
    ['a name too long', { ...ada, displayName: 'x'.repeat(81) }],
  ])('does not understand %s', (_what, data) => {
    expect(() => register(data)).toThrow(expect.objectContaining({ code: 'COMMAND.INVALID' }));
  });

  it.each(roles)('by %s', (role) => {
    const staff = ['operator', 'admin', 'system'].includes(role);
    expect(allowed(register(ada, { id: 'ada', role }))).toBe(staff || role === 'owner');
    expect(allowed(register(ada, { id: 'eve', role }))).toBe(staff);
  });
});

describe('API keys', () => {
  const key = {
    accountId: 'ada',
    keyId: '0123456789ab',
    name: 'laptop',
    scopes: ['play' as const],
    secretHash: 'a'.repeat(64),
  };
  const issue = (change: object = {}, actor?: Actor) => new IssueApiKey({ ...key, ...change }, metaOf('c1', actor));
  const revoke = (change: object = {}, actor?: Actor) =>
    new RevokeApiKey({ accountId: 'ada', keyId: key.keyId, reason: 'lost', ...change }, metaOf('c2', actor));
  const issued = { type: 'ApiKeyIssued', data: key } as const;
  const revoked = { type: 'ApiKeyRevoked', data: { accountId: 'ada', keyId: key.keyId, reason: 'lost' } } as const;

  it('are issued to owners, and revoked once', () => {
    given([registered]).when(issue()).then([issued]);
    given([registered, issued]).when(revoke()).then([revoked]);
    given([registered, issued, revoked]).when(revoke()).then([]);
  });

  it('are refused to strangers, twice, without end, and for agents of others', () => {
    given([]).when(issue()).thenRefused('ACCOUNTS.UNKNOWN');
    given([registered, issued]).when(issue()).thenRefused('ACCOUNTS.KEY_EXISTS');
    given([registered]).when(revoke()).thenRefused('ACCOUNTS.UNKNOWN_KEY');
    given([registered])
      .when(issue({ agents: ['bob.bot'] }))
      .thenRefused('ACCOUNTS.NOT_YOURS');
    const many = Array.from({ length: KEYS_MAX }, (_, i): AccountEvent => {
      return { type: 'ApiKeyIssued', data: { ...key, keyId: i.toString(16).padStart(12, '0') } };
    });
    given([registered, ...many])
      .when(issue())
      .thenRefused('ACCOUNTS.TOO_MANY_KEYS');
    const one: AccountEvent = { type: 'ApiKeyRevoked', data: { accountId: 'ada', keyId: '000000000000', reason: '' } };
    given([registered, ...many, one])
      .when(issue())
      .then([issued]);
  });

  it('are known from the events, with what became of them', () => {
    expect(keysFrom([registered, issued])[key.keyId]).toMatchObject({ revoked: false, scopes: ['play'] });
    expect(keysFrom([registered, issued, revoked])[key.keyId]).toMatchObject({ revoked: true });
  });

  it.each<[string, object]>([
    ['no scope', { scopes: [] }],
    ['an unknown scope', { scopes: ['everything'] }],
    ['an id that is none', { keyId: 'xyz' }],
    ['a secret instead of its hash', { secretHash: 'hunter2' }],
  ])('do not understand %s', (_what, change) => {
    expect(() => issue(change)).toThrow(expect.objectContaining({ code: 'COMMAND.INVALID' }));
  });

  it.each(roles)('by %s', (role) => {
    const staff = ['operator', 'admin', 'system'].includes(role);
    for (const command of [issue, revoke]) {
      expect(allowed(command({}, { id: 'ada', role }))).toBe(staff || role === 'owner');
      expect(allowed(command({}, { id: 'eve', role }))).toBe(staff);
    }
  });
});
