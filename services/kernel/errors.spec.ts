import { describe, expect, it } from 'vitest';
import { AgonError, asAgonError, invariant, isAgonError, unreachable } from './errors.js';

describe('the one error', () => {
  it('has a stable code, a message and details', () => {
    const cause = new Error('below');
    const error = new AgonError('A.B', 'It broke.', { id: 1 }, { cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: 'AgonError', code: 'A.B', message: 'It broke.', details: { id: 1 }, cause });
  });

  it.each<[string, unknown, string | undefined, boolean]>([
    ['itself', new AgonError('A.B', ''), undefined, true],
    ['itself by code', new AgonError('A.B', ''), 'A.B', true],
    ['another code', new AgonError('A.B', ''), 'A.C', false],
    ['another error', new Error('x'), undefined, false],
    ['something that only looks alike', { code: 'A.B' }, 'A.B', false],
    ['nothing', undefined, undefined, false],
  ])('is told from %s', (_what, error, code, expected) => {
    expect(isAgonError(error, code)).toBe(expected);
  });

  it('wraps whatever else is thrown, and keeps it as the cause', () => {
    const own = new AgonError('A.B', 'x');
    const foreign = new TypeError('y');
    expect(asAgonError(own)).toBe(own);
    expect(asAgonError(foreign)).toMatchObject({ code: 'INTERNAL', message: 'y', cause: foreign });
    expect(asAgonError('text')).toMatchObject({ code: 'INTERNAL', message: 'text', cause: 'text' });
  });

  it('states what must be true', () => {
    expect(() => invariant(true, 'never')).not.toThrow();
    expect(() => invariant(0, 'Zero.')).toThrow(
      expect.objectContaining({ code: 'INTERNAL.INVARIANT', message: 'Zero.' }),
    );
    expect(() => unreachable('x' as never)).toThrow(expect.objectContaining({ code: 'INTERNAL.UNREACHABLE' }));
  });
});
