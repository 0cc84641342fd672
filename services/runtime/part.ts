import type { Host } from './host.js';

/** What a part, or an engine, is once it runs. */
export interface Running<Value> {
  readonly value: Value;
  /** Words about how it is; throws when it is not well. Left out by what speaks through its consumers, or is never unwell. */
  ready?(): Promise<string>;
  /** The arena is ready without it. */
  readonly optional?: boolean;
  readonly stop?: (() => Promise<unknown>) | undefined;
}

/**
 * Something that an arena consists of, written once, beside its code. A host starts it when what it needs has started,
 * and stops it before that.
 */
export interface Part<Value = unknown> {
  readonly name: string;
  readonly needs: Readonly<Record<string, Part>>;
  start(needs: never, host: Host): Promise<Running<Value>>;
}

type ValuesOf<Needs> = { readonly [Name in keyof Needs]: Needs[Name] extends Part<infer Value> ? Value : never };

/**
 * Declares a part, checked against the parts that it needs.
 *
 * @example
 * export const clockPart = definePart({
 *   name: 'clock',
 *   needs: { writeSide },
 *   start: async ({ writeSide: { execute } }, host) => ({ value: startClock(execute, host.log) }),
 * });
 */
export const definePart = <Value, Needs extends Readonly<Record<string, Part>>>(part: {
  readonly name: string;
  readonly needs: Needs;
  start(needs: ValuesOf<Needs>, host: Host): Promise<Running<Value>>;
}): Part<Value> => part;
