import assert from 'node:assert';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Add, counter, metaOf } from '../../services/kernel/fixtures.js';
import { AgonError, type DomainEvent } from '../../services/kernel/index.js';
import { specification } from '../../services/kernel/spec.js';
import { isAssertion, judge, type Run, type SpecError, whyUnfitToJudge } from './faults/verdict.js';

function thrownBy(work: () => unknown): SpecError {
  try {
    work();
  } catch (error) {
    return error as SpecError;
  }
  throw new Error('nothing was thrown');
}

const passed: Run = { passed: 3, skipped: [], errors: [], outside: [] };
const failed = (...errors: SpecError[]): Run => ({ ...passed, errors });
const kindOf = (run: Run, planted = 1) => judge(run, planted).kind;

const nobody = undefined as unknown as { name: string };
const assertion = thrownBy(() => expect(1).toBe(2));
const crash = thrownBy(() => nobody.name);
const refused = new AgonError('WALLET.FROZEN', 'The wallet is frozen.');
const timeout = new Error('Test timed out in 30000ms.\nIf this is a long-running test, pass a timeout value.');
const hookTimeout = new Error('Hook timed out in 60000ms.\nIf this is a long-running hook, pass a timeout value.');

describe('what kills a fault', () => {
  const property = (holds: (n: number) => unknown) =>
    thrownBy(() =>
      fc.assert(
        fc.property(fc.nat(), (n) => void holds(n)),
        { seed: 1 },
      ),
    );
  const decided = specification(counter);
  const command = new Add({ counterId: 'a', by: 0 }, metaOf('c1'));
  const something: DomainEvent = { type: 'Added', data: { counterId: 'a', by: 1 } };

  it.each<[string, SpecError]>([
    ['expect', assertion],
    ['expect with another matcher', thrownBy(() => expect({ a: 1 }).toMatchObject({ a: 2 }))],
    ['an expected throw that did not come', thrownBy(() => expect(() => 1).toThrow('no'))],
    ['expect.fail', thrownBy(() => expect.fail('no'))],
    ['assert of Node', thrownBy(() => assert.equal(1, 2))],
    ['a property with an assertion', property((n) => expect(n).toBeLessThan(5))],
    ['a property that is false', thrownBy(() => fc.assert(fc.property(fc.nat(), (n) => n < 5)))],
    ['a specification', thrownBy(() => decided([]).when(command).then([something]))],
    ['a specification of a refusal', thrownBy(() => decided([]).when(command).thenRefused('NO'))],
  ])('is %s', (_what, error) => {
    expect(isAssertion(error)).toBe(true);
  });

  it.each<[string, SpecError]>([
    ['a TypeError', crash],
    ['a ReferenceError', new ReferenceError('x is not defined')],
    ['what the product throws', refused],
    ['what the product throws over an assertion', new AgonError('INTERNAL', 'no', {}, { cause: assertion })],
    ['a file that cannot be imported', new SyntaxError('Unexpected token')],
    ['a property that falls over', property(() => nobody.name)],
    ['a text that speaks of assertions', new Error('AssertionError: no')],
    ['a timeout', timeout],
  ])('is not %s', (_what, error) => {
    expect(isAssertion(error)).toBe(false);
  });
});

describe('the verdict about a fault', () => {
  it.each<[string, Run, string]>([
    ['killed', failed(assertion), 'killed'],
    ['killed, whatever fell over before', failed(crash, timeout, assertion), 'killed'],
    ['a crash', failed(timeout, crash), 'crash'],
    ['a crash where the product refuses', failed(refused), 'crash'],
    ['a timeout of a spec', failed(timeout), 'timeout'],
    ['a timeout of a hook', failed(hookTimeout), 'timeout'],
    ['a timeout where the run was given up', { ...passed, gaveUpAfterMs: 1 }, 'timeout'],
    ['outside of any spec', { ...passed, outside: [crash] }, 'outside'],
    ['outside of any spec, even if it is an assertion', { ...passed, outside: [assertion] }, 'outside'],
    ['survived', passed, 'survived'],
    ['skipped where an engine is missing', { ...passed, skipped: ['with Redis'] }, 'skipped'],
    ['killed by the specs that need no engine', { ...failed(assertion), skipped: ['with Redis'] }, 'killed'],
  ])('is %s', (_what, run, kind) => {
    expect(kindOf(run)).toBe(kind);
  });

  it('is that the file was not reached, whatever failed', () => {
    expect(kindOf(passed, 0)).toBe('not reached');
    expect(kindOf(failed(assertion), 0)).toBe('not reached');
  });
});

describe('specs that are to judge', () => {
  it('pass', () => {
    expect(whyUnfitToJudge(passed)).toBeUndefined();
    expect(whyUnfitToJudge({ ...passed, skipped: ['with Redis'] })).toBeUndefined();
  });

  it.each<[string, Run, string]>([
    ['fail', failed(assertion), 'not judged'],
    ['fall over', failed(crash), 'not judged'],
    ['leave an error behind', { ...passed, outside: [crash] }, 'not judged'],
    ['take too long', { ...passed, gaveUpAfterMs: 1 }, 'not judged'],
    ['are not there', { ...passed, passed: 0 }, 'not judged'],
    ['lack their engine', { ...passed, passed: 0, skipped: ['with Redis'] }, 'skipped'],
  ])('do not judge if they %s', (_what, run, kind) => {
    expect(whyUnfitToJudge(run)?.kind).toBe(kind);
  });

  it('say what fails', () => {
    expect(whyUnfitToJudge(failed(crash))?.why).toMatch(/^the baseline fails: TypeError: Cannot read/);
  });
});
