import { describe, expect, it } from 'vitest';
import { actsFor, isStaff, mayRead, newMeta, SYSTEM, slug, text } from './command.js';
import { memberRoles, type Role, roles } from './event.js';
import { Add, AddEach, metaOf, OPERATOR } from './fixtures.js';
import { manualClock, seededIds } from './ids.js';

describe('a command', () => {
  it('in hand is well formed', () => {
    const command = new Add({ counterId: 'a', by: 1 }, metaOf('c1'));
    expect(command).toMatchObject({
      type: 'Add',
      data: { counterId: 'a', by: 1 },
      meta: { id: 'c1', actor: OPERATOR },
    });
    expect(Add.spec.stream(command.data)).toBe('counter-a');
  });

  it('drops what its schema does not name', () => {
    const input = { counterId: 'a', by: 1, admin: true };
    expect(new Add(input, metaOf('c1')).data).toEqual({ counterId: 'a', by: 1 });
  });

  it.each<[string, unknown, string[]]>([
    ['a missing field', { counterId: 'a' }, ['by']],
    ['several faults at once', {}, ['counterId', 'by']],
    ['a wrong type', { counterId: 'a', by: '1' }, ['by']],
    ['a fraction', { counterId: 'a', by: 1.5 }, ['by']],
    ['no object', null, ['']],
  ])('with %s is refused, field by field', (_what, data, fields) => {
    const make = () => new Add(data as never, metaOf('c1'));
    expect(make).toThrow(
      expect.objectContaining({
        code: 'COMMAND.INVALID',
        message: expect.stringMatching(/^Add was not understood\./),
        details: { fields: fields.map((field) => expect.objectContaining({ field })) },
      }),
    );
  });

  it('names the place inside lists', () => {
    const make = () => new AddEach({ counterId: 'a', amounts: [1, Number.NaN] }, metaOf('c1'));
    expect(make).toThrow(expect.objectContaining({ message: expect.stringContaining('amounts.1: ') }));
  });
});

describe('the meta of a command', () => {
  it('correlates with itself when it starts something', () => {
    const options = { ids: seededIds('meta'), clock: manualClock('2026-01-01T00:00:00.000Z') };
    const meta = newMeta(OPERATOR, options);
    expect(meta).toEqual({
      id: seededIds('meta')(),
      actor: OPERATOR,
      time: '2026-01-01T00:00:00.000Z',
      correlationId: meta.id,
      causationId: meta.id,
    });
  });

  it("takes the caller's key as its id", () => {
    expect(newMeta(OPERATOR, { id: 'my-key' })).toMatchObject({ id: 'my-key', correlationId: 'my-key' });
  });

  it('is new each time otherwise', () => {
    expect(newMeta(SYSTEM).id).not.toBe(newMeta(SYSTEM).id);
  });
});

describe('who may act', () => {
  const staff: readonly Role[] = ['operator', 'admin', 'system'];
  it.each(roles)('%s', (role) => {
    expect(isStaff({ id: 'ada', role })).toBe(staff.includes(role));
    expect(actsFor({ id: 'ada', role }, 'ada')).toBe(staff.includes(role) || role === 'owner');
    expect(actsFor({ id: 'ada', role }, 'bob')).toBe(staff.includes(role));
  });
});

describe('who acts for an organisation', () => {
  it.each(memberRoles)('a member as %s', (role) => {
    const actor = { id: 'ada', role: 'owner', memberOf: { acme: role } } as const;
    const enough = memberRoles.filter((each) => actsFor(actor, 'acme', each));
    expect(enough).toEqual(memberRoles.slice(0, memberRoles.indexOf(role) + 1));
    expect(actsFor(actor, 'acme')).toBe(role !== 'auditor');
    expect(mayRead(actor, 'acme')).toBe(true);
    expect(actsFor(actor, 'other', 'auditor')).toBe(false);
    expect(mayRead(actor, 'other')).toBe(false);
  });

  it('and auditors of the arena see everything and do nothing', () => {
    const auditor = { id: 'aud', role: 'auditor' } as const;
    expect(mayRead(auditor, 'acme')).toBe(true);
    expect(actsFor(auditor, 'acme', 'auditor')).toBe(false);
    expect(actsFor(auditor, 'aud')).toBe(false);
  });
});

describe('a name that people type', () => {
  it.each(['a', '7', 'ada', 'ada-l', '0x0', 'a'.repeat(39), 'a--b'])('"%s" is one', (name) => {
    expect(slug.safeParse(name).success).toBe(true);
  });
  it.each(['', '-a', 'a-', 'Ada', 'a b', 'a.b', 'a_b', 'ä', 'a'.repeat(40), 'a\n', '../a'])('"%s" is none', (name) => {
    expect(slug.safeParse(name).success).toBe(false);
  });
});

describe('text', () => {
  it.each(['', 'a', 'Ünïcode 🎲', 'x'.repeat(5)])('takes %j', (value) => {
    expect(text(10).safeParse(value).success).toBe(true);
  });

  it.each(['a\u0000b', '\n', '\u007f', '\u0085', '\ud800', 'x'.repeat(11)])('refuses %j', (value) => {
    expect(text(10).safeParse(value).success).toBe(false);
  });
});
