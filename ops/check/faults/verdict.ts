/** An error as vitest hands it over from the process of a spec. */
export interface SpecError {
  readonly name?: string | undefined;
  readonly message: string;
  readonly cause?: unknown;
}

/** What became of the specs of one file. */
export interface Run {
  readonly passed: number;
  /** Names of the specs that were not run, for want of an engine. */
  readonly skipped: readonly string[];
  /** Errors of specs, of their hooks, and of loading the file. */
  readonly errors: readonly SpecError[];
  /** Errors that no spec waited for. */
  readonly outside: readonly SpecError[];
  /** Set if the run had to be given up. */
  readonly gaveUpAfterMs?: number;
}

export interface Verdict {
  readonly kind: 'killed' | 'survived' | 'crash' | 'timeout' | 'outside' | 'not reached' | 'not judged' | 'skipped';
  readonly why: string;
}

const TIMED_OUT = /^(?:Test|Hook) timed out in \d+ms/;
/** A property of fast-check that returned false has no error of its own: this is its assertion. */
const SAID_FALSE = 'Property failed by returning false';

/**
 * Whether a spec claimed something that does not hold. Errors of another name were thrown by what is tested, or by a spec
 * that stumbled over it: they tell that something is wrong, and not that a spec looked. What wraps an assertion, such as
 * a property of fast-check with its counterexample, is an Error with that assertion as its cause.
 */
export function isAssertion(error: SpecError): boolean {
  if (error.name === 'AssertionError' || error.message === SAID_FALSE) return true;
  const { cause } = error;
  return error.name === 'Error' && isSpecError(cause) && isAssertion(cause);
}

const isSpecError = (value: unknown): value is SpecError =>
  typeof value === 'object' && value !== null && 'message' in value && typeof value.message === 'string';

/** What is wrong with specs that nobody has planted a fault in; undefined if they can judge one. */
export function whyUnfitToJudge({ passed, skipped, errors, outside, gaveUpAfterMs }: Run): Verdict | undefined {
  const error = errors[0] ?? outside[0];
  if (gaveUpAfterMs !== undefined)
    return { kind: 'not judged', why: `the baseline took more than ${gaveUpAfterMs} ms` };
  if (error) return { kind: 'not judged', why: `the baseline fails: ${textOf(error)}` };
  if (passed > 0) return undefined;
  if (skipped.length > 0) return { kind: 'skipped', why: missing(skipped) };
  return { kind: 'not judged', why: 'the baseline has no spec' };
}

/** Only an assertion kills: a fault that merely makes something fall over has not been understood by any spec. */
export function judge({ errors, outside, skipped, gaveUpAfterMs }: Run, plantedTimes: number): Verdict {
  if (plantedTimes === 0) return { kind: 'not reached', why: 'the spec never loaded the file' };
  const assertion = errors.find(isAssertion);
  if (assertion) return { kind: 'killed', why: textOf(assertion) };
  const crash = errors.find(({ message }) => !TIMED_OUT.test(message));
  if (crash) return { kind: 'crash', why: `no assertion, but ${textOf(crash)}` };
  if (gaveUpAfterMs !== undefined) return { kind: 'timeout', why: `given up after ${gaveUpAfterMs} ms` };
  if (errors[0]) return { kind: 'timeout', why: textOf(errors[0]) };
  if (outside[0]) return { kind: 'outside', why: `outside of any spec: ${textOf(outside[0])}` };
  if (skipped.length > 0) return { kind: 'skipped', why: missing(skipped) };
  return { kind: 'survived', why: 'every spec passed' };
}

const missing = (skipped: readonly string[]) =>
  `an engine is missing: ${skipped.length} specs did not run, ${skipped[0]}`;

const textOf = ({ name, message }: SpecError) => `${name ?? 'Error'}: ${message.trim().split('\n', 1)[0]}`;
