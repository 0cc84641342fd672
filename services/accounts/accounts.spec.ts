import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { type Actor, roles } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import { accounts, RegisterOwner } from './index.js';

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
