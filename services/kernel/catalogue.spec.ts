import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkedData, defineEvents, upcasterOf } from './catalogue.js';
import type { RecordedEvent } from './event.js';
import { chain } from './fixtures.js';

/** An event that has changed twice: a name was split, then a field with a default was added. */
const people = defineEvents('people', {
  PersonNamed: {
    version: 3,
    schema: z.object({ first: z.string(), last: z.string(), title: z.string() }),
    upcast: {
      1: ({ name }) => {
        const [first = '', last = ''] = String(name).split(' ');
        return { first, last };
      },
      2: (data) => ({ ...data, title: '' }),
    },
  },
  PersonLeft: { version: 1, schema: z.object({ reason: z.string().max(3) }) },
});

const recorded = (type: string, version: number, data: unknown): RecordedEvent => ({
  ...(chain('person-ada', 1)[0] as RecordedEvent),
  position: 12,
  type,
  version,
  data,
});

describe('a catalogue of events', () => {
  const upcast = upcasterOf([people]);

  it.each([
    [1, { name: 'Ada Lovelace' }, { first: 'Ada', last: 'Lovelace', title: '' }],
    [2, { first: 'Ada', last: 'Lovelace' }, { first: 'Ada', last: 'Lovelace', title: '' }],
    [3, { first: 'Ada', last: 'Lovelace', title: 'Countess' }, { first: 'Ada', last: 'Lovelace', title: 'Countess' }],
  ])('reads version %i as the newest', (version, data, expected) => {
    const event = recorded('PersonNamed', version, data);
    expect(upcast(event)).toEqual({ ...event, version: 3, data: expected });
  });

  it('leaves the recorded event as it is', () => {
    const event = recorded('PersonNamed', 1, { name: 'Ada Lovelace' });
    upcast(event);
    expect(event).toMatchObject({ version: 1, data: { name: 'Ada Lovelace' } });
  });

  it.each([
    ['a type that nobody declared', 'PersonBorn', 1, 'EVENT.UNKNOWN_TYPE'],
    ['a version from the future', 'PersonNamed', 4, 'EVENT.FUTURE_VERSION'],
  ])('refuses to read %s, and says where it stands', (_what, type, version, code) => {
    expect(() => upcast(recorded(type, version, {}))).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining('position 12') }),
    );
  });

  it('knows which types it can read', () => {
    expect([upcast.knows('PersonNamed'), upcast.knows('PersonBorn')]).toEqual([true, false]);
  });

  it('must have a step for every older version', () => {
    const holes = () => defineEvents('p', { A: { version: 3, schema: z.object({}), upcast: { 1: (data) => data } } });
    expect(holes).toThrow(expect.objectContaining({ code: 'INTERNAL.INVARIANT' }));
  });

  it('must not declare what another context declares', () => {
    const other = defineEvents('other', { PersonLeft: { version: 1, schema: z.object({}) } });
    expect(() => upcasterOf([people, other])).toThrow(expect.objectContaining({ code: 'INTERNAL.INVARIANT' }));
  });

  it('writes the newest version', () => {
    const data = { first: 'Ada', last: 'Lovelace', title: '' };
    expect(checkedData(people, { type: 'PersonNamed', data })).toEqual({ version: 3, data });
  });

  it.each([
    ['an unknown type', { type: 'PersonBorn', data: {} }, 'EVENT.UNKNOWN_TYPE'],
    ['a missing field', { type: 'PersonNamed', data: { first: 'Ada' } }, 'EVENT.INVALID'],
    ['a field out of bounds', { type: 'PersonLeft', data: { reason: 'long' } }, 'EVENT.INVALID'],
    ['no data', { type: 'PersonLeft', data: undefined }, 'EVENT.INVALID'],
  ])('refuses to write %s', (_what, event, code) => {
    expect(() => checkedData(people, event)).toThrow(expect.objectContaining({ code }));
  });
});
