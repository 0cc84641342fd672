/**
 * The one error type of Agon. `code` is stable and part of the public interface: the gateway maps it once to HTTP
 * problem details, the command line prints it, and scripts may match on it. Messages may change, codes may not.
 *
 * @example throw new AgonError('WALLET.UNKNOWN_HOLD', `There is no hold ${holdId}.`, { holdId });
 */
export class AgonError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;

  constructor(code: string, message: string, details: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgonError';
    this.code = code;
    this.details = details;
  }
}

export const isAgonError = (error: unknown, code?: string): error is AgonError =>
  error instanceof AgonError && (code === undefined || error.code === code);

/** Turns anything thrown into an AgonError, so that no edge ever shows a stack trace. */
export function asAgonError(error: unknown): AgonError {
  if (error instanceof AgonError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new AgonError('INTERNAL', message, {}, { cause: error });
}

/** States what must be true here. A failure is a fault in Agon itself, never a user's mistake. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AgonError('INTERNAL.INVARIANT', message);
}

/** Closes an exhaustive switch: the compiler rejects a forgotten case, and data that lies fails loudly. */
export function unreachable(value: never): never {
  throw new AgonError('INTERNAL.UNREACHABLE', `No case for ${JSON.stringify(value)}.`);
}
