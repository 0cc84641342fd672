import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { type Actor, type MemberRole, roles, SYSTEM } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import { accountDecider, KEYS_MAX, ORGANISATIONS_MAX } from './decider.js';
import {
  type AccountEvent,
  accounts,
  ChangePassword,
  DisableTotp,
  EnableTotp,
  EnrolPerson,
  ErasePerson,
  IssueApiKey,
  JoinOrganisation,
  LeaveOrganisation,
  RefuseSignIn,
  RegisterOrganisation,
  RegisterOwner,
  RemoveMember,
  RevokeApiKey,
  SetMember,
} from './index.js';

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

  it('to the log are given by those who run the arena, to themselves', () => {
    const toLog = { scopes: ['log' as const] };
    const joined = { type: 'OrganisationJoined', data: { accountId: 'ada', organisationId: 'staff' } } as const;
    given([registered]).when(issue(toLog)).thenRefused('ACCOUNTS.NOT_STAFF');
    given([registered, joined])
      .when(issue(toLog))
      .then([{ ...issued, data: { ...key, ...toLog } }]);
    given([])
      .when(issue({ ...toLog, accountId: 'staff' }))
      .then([{ ...issued, data: { ...key, ...toLog, accountId: 'staff' } }]);
  });

  it.each(roles)('to the log, by %s', (role) => {
    const by = (change: object) => allowed(issue({ scopes: ['log'], ...change }, { id: 'ada', role }));
    // An operator who signed in with a password alone is an owner like all others.
    const mayGive = ['operator', 'admin', 'system'].includes(role);
    expect([by({}), by({ scopes: ['play', 'log'] }), by({ accountId: 'staff' })]).toEqual([mayGive, mayGive, mayGive]);
  });

  it('are known from the events, with what became of them', () => {
    const keysOf = (events: AccountEvent[]) => events.reduce(accountDecider.evolve, accountDecider.initial).keys;
    expect(keysOf([registered, issued])[key.keyId]).toMatchObject({ revoked: false, scopes: ['play'] });
    expect(keysOf([registered, issued, revoked])[key.keyId]).toMatchObject({ revoked: true });
    // However many there were, only the last are kept: what is kept is looked at with every event.
    const many = Array.from({ length: 500 }, (_, i) => i.toString(16).padStart(12, '0')).flatMap((keyId) => {
      return [
        { ...issued, data: { ...key, keyId } },
        { ...revoked, data: { ...revoked.data, keyId } },
      ] as const;
    });
    const kept = Object.keys(keysOf([registered, issued, ...many]));
    expect(kept).toHaveLength(1 + 32);
    expect(kept).toEqual(expect.arrayContaining([key.keyId, '0000000001f3', '0000000001d4']));
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

describe('people', () => {
  const personId = '0b9f6a52-3c1e-5d4b-8a77-9f0e1d2c3b4a';
  const person = { accountId: 'ada', personId };
  const self: Actor = { id: 'ada', role: 'owner' };
  const enrolled = { type: 'PersonEnrolled', data: person } as const;
  const by = (actor: Actor) => metaOf('c1', actor);

  it('enrol with a name that nobody has; to one that is there, staff lets them in', () => {
    const shown = { type: 'OwnerRegistered', data: { accountId: 'ada', displayName: 'ada' } } as const;
    given([])
      .when(new EnrolPerson(person, by(self)))
      .then([shown, enrolled]);
    given([registered])
      .when(new EnrolPerson(person, by(self)))
      .thenRefused('ACCOUNTS.TAKEN');
    given([registered])
      .when(new EnrolPerson(person, metaOf('c1')))
      .then([enrolled]);
    given([registered, enrolled])
      .when(new EnrolPerson({ ...person, personId: '1b9f6a52-3c1e-5d4b-8a77-9f0e1d2c3b4a' }, metaOf('c1')))
      .thenRefused('ACCOUNTS.TAKEN');
    given([])
      .when(new EnrolPerson({ ...person, accountId: 'staff' }, metaOf('c1')))
      .thenRefused('ACCOUNTS.RESERVED');
  });

  it('change what proves who they are, and are erased once', () => {
    const change = (id = personId) => new ChangePassword({ accountId: 'ada', personId: id }, by(self));
    given([registered, enrolled])
      .when(change())
      .then([{ type: 'PasswordChanged', data: person }]);
    given([registered, enrolled])
      .when(change('1b9f6a52-3c1e-5d4b-8a77-9f0e1d2c3b4a'))
      .thenRefused('ACCOUNTS.NO_PERSON');
    const on = { type: 'TotpEnabled', data: person } as const;
    given([registered, enrolled])
      .when(new EnableTotp(person, by(self)))
      .then([on]);
    given([registered, enrolled, on])
      .when(new EnableTotp(person, by(self)))
      .then([]);
    given([registered, enrolled])
      .when(new DisableTotp(person, by(self)))
      .then([]);
    const erased = { type: 'PersonErased', data: person } as const;
    given([registered, enrolled])
      .when(new ErasePerson(person, by(self)))
      .then([erased]);
    given([registered, enrolled, erased])
      .when(new ErasePerson(person, by(self)))
      .then([]);
    given([registered, enrolled, erased]).when(change()).thenRefused('ACCOUNTS.NO_PERSON');
  });

  it('who guess are noted once a minute', () => {
    const refuse = (time: string) =>
      new RefuseSignIn({ accountId: 'ada', factor: 'password' }, { ...metaOf('c1', SYSTEM), time });
    const noted = (at: string): AccountEvent => ({
      type: 'SignInRefused',
      data: { accountId: 'ada', factor: 'password', at },
    });
    const [now, soon, later] = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:59.999Z', '2026-01-01T00:01:00.000Z'];
    given([registered])
      .when(refuse(now))
      .then([noted(now)]);
    given([registered, noted(now)])
      .when(refuse(soon))
      .then([]);
    given([registered, noted(now)])
      .when(refuse(later))
      .then([noted(later)]);
  });

  it.each(roles)('by %s', (role) => {
    const may = ['operator', 'admin', 'system'].includes(role);
    const commands = [EnrolPerson, ChangePassword, EnableTotp, DisableTotp, ErasePerson];
    for (const command of commands) {
      expect(allowed(new command(person, by({ id: 'ada', role })))).toBe(may || role === 'owner');
      expect(allowed(new command(person, by({ id: 'eve', role, memberOf: { ada: 'admin' } })))).toBe(may);
    }
    const refuse = new RefuseSignIn({ accountId: 'ada', factor: 'totp' }, by({ id: 'ada', role }));
    expect(allowed(refuse)).toBe(role === 'system');
  });
});

describe('organisations', () => {
  const acme = { accountId: 'acme', displayName: 'Acme' };
  const shown = { type: 'OwnerRegistered', data: acme } as const;
  const member = (memberId: string, role: MemberRole) =>
    ({ type: 'MemberSet', data: { accountId: 'acme', memberId, role } }) as const;
  const set = (memberId: string, role: MemberRole, actor?: Actor, accountId = 'acme') =>
    new SetMember({ accountId, memberId, role }, metaOf('c1', actor));
  const remove = (memberId: string, actor?: Actor) =>
    new RemoveMember({ accountId: 'acme', memberId }, metaOf('c1', actor));
  const founded = [shown, member('ada', 'owner')];

  it('begin with an owner, and keep one', () => {
    const found = new RegisterOrganisation({ ...acme, founderId: 'ada' }, metaOf('c1', { id: 'ada', role: 'owner' }));
    given([]).when(found).then(founded);
    given(founded).when(found).thenRefused('ACCOUNTS.TAKEN');
    given(founded).when(set('ada', 'member')).thenRefused('ACCOUNTS.LAST_OWNER');
    given(founded).when(remove('ada')).thenRefused('ACCOUNTS.LAST_OWNER');
    given([...founded, member('bob', 'owner')])
      .when(remove('ada'))
      .then([{ type: 'MemberRemoved', data: { accountId: 'acme', memberId: 'ada' } }]);
    given(founded).when(remove('nobody')).then([]);
    given(founded).when(set('ada', 'owner')).then([]);
  });

  it('have owners made by owners alone', () => {
    const admin: Actor = { id: 'bob', role: 'owner', memberOf: { acme: 'admin' } };
    const owner: Actor = { id: 'ada', role: 'owner', memberOf: { acme: 'owner' } };
    const both = [...founded, member('bob', 'admin')];
    given(both)
      .when(set('bob', 'owner', admin))
      .thenRefused('AUTH.FORBIDDEN');
    given(both)
      .when(set('ada', 'member', admin))
      .thenRefused('AUTH.FORBIDDEN');
    given(both).when(remove('ada', admin)).thenRefused('AUTH.FORBIDDEN');
    given(both)
      .when(set('cyd', 'admin', admin))
      .then([member('cyd', 'admin')]);
    given(both)
      .when(set('bob', 'owner', owner))
      .then([member('bob', 'owner')]);
  });

  it('are not persons, and persons are not organisations', () => {
    const enrolled = {
      type: 'PersonEnrolled',
      data: { accountId: 'ada', personId: '0b9f6a52-3c1e-5d4b-8a77-9f0e1d2c3b4a' },
    } as const;
    given([registered, enrolled])
      .when(set('bob', 'member', undefined, 'ada'))
      .thenRefused('ACCOUNTS.IS_PERSON');
    given(founded)
      .when(new EnrolPerson({ ...enrolled.data, accountId: 'acme' }, metaOf('c1')))
      .thenRefused('ACCOUNTS.TAKEN');
    given([]).when(set('bob', 'member')).thenRefused('ACCOUNTS.UNKNOWN');
  });

  it('of staff are appointed by admins and by the machine, never by operators', () => {
    const appoint = (actor: Actor, role: MemberRole = 'admin') => set('bob', role, actor, 'staff');
    expect(allowed(appoint({ id: 'olga', role: 'admin' }))).toBe(true);
    expect(allowed(appoint({ id: 'operator', role: 'operator' }))).toBe(true);
    expect(allowed(appoint({ id: 'oskar', role: 'operator' }))).toBe(false);
    expect(allowed(appoint({ id: 'eve', role: 'owner', memberOf: { staff: 'admin' } }))).toBe(false);
    given([])
      .when(appoint({ id: 'olga', role: 'admin' }, 'owner'))
      .thenRefused('ACCOUNTS.BAD_ROLE');
  });

  it('are joined by people, each by not too many, and left', () => {
    const data = { accountId: 'ada', organisationId: 'acme' };
    const enrolled: AccountEvent = {
      type: 'PersonEnrolled',
      data: { accountId: 'ada', personId: '0b9f6a52-3c1e-5d4b-8a77-9f0e1d2c3b4a' },
    };
    const joined = (organisationId = 'acme'): AccountEvent => {
      return { type: 'OrganisationJoined', data: { ...data, organisationId } };
    };
    const join = new JoinOrganisation(data, metaOf('c1', { id: 'ada', role: 'owner' }));
    const leave = new LeaveOrganisation(data, metaOf('c1', { id: 'ada', role: 'owner' }));
    const left = { type: 'OrganisationLeft', data } as const;
    given([registered, enrolled]).when(join).then([joined()]);
    given([registered, enrolled, joined()]).when(join).then([]);
    given([registered, enrolled, joined()]).when(leave).then([left]);
    given([registered, enrolled]).when(leave).then([]);
    given([registered]).when(join).thenRefused('ACCOUNTS.NO_PERSON');
    const many = Array.from({ length: ORGANISATIONS_MAX }, (_, i) => joined(`o-${i}`));
    given([registered, enrolled, ...many])
      .when(join)
      .thenRefused('ACCOUNTS.TOO_MANY_ORGANISATIONS');
    given([registered, enrolled, ...many, { ...left, data: { ...data, organisationId: 'o-7' } }])
      .when(join)
      .then([joined()]);
    for (const command of [JoinOrganisation, LeaveOrganisation]) {
      expect(allowed(new command(data, metaOf('c1', { id: 'eve', role: 'owner' })))).toBe(false);
      const owner: Actor = { id: 'eve', role: 'owner', memberOf: { acme: 'owner' } };
      expect(allowed(new command(data, metaOf('c1', owner)))).toBe(false);
    }
  });

  it('stay organisations when whoever owned them was erased, and are no longer joined by whoever comes after', () => {
    const gone = { type: 'MemberRemoved', data: { accountId: 'acme', memberId: 'ada' } } as const;
    given(founded).when(remove('ada', SYSTEM)).then([gone]);
    const person = { accountId: 'acme', personId: '0b9f6a52-3c1e-5d4b-8a77-9f0e1d2c3b4a' };
    given([...founded, gone])
      .when(new EnrolPerson(person, metaOf('c1')))
      .thenRefused('ACCOUNTS.TAKEN');
    const history: AccountEvent[] = [
      { type: 'OrganisationJoined', data: { accountId: 'ada', organisationId: 'acme' } },
      { type: 'PersonErased', data: { ...person, accountId: 'ada' } },
    ];
    expect(history.reduce(accountDecider.evolve, accountDecider.initial).joined).toEqual([]);
  });

  it('may be left by everybody', () => {
    expect(allowed(remove('bob', { id: 'bob', role: 'owner' }))).toBe(true);
    expect(allowed(remove('bob', { id: 'cyd', role: 'owner' }))).toBe(false);
    expect(allowed(remove('bob', { id: 'bob', role: 'runner' }))).toBe(false);
  });
});
