import { hash } from 'node:crypto';

/** What a command follows from: the whole that it is part of, and the request or event right before it. */
export interface Cause {
  readonly correlationId: string;
  readonly causationId: string;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;

/**
 * Where a caller's trace stands, by W3C's traceparent header; undefined where there is none or it breaks the rules.
 *
 * @example callerOf('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01')?.spanId // '00f067aa0ba902b7'
 */
export function callerOf(traceparent: unknown): { readonly traceId: string; readonly spanId: string } | undefined {
  if (typeof traceparent !== 'string' || traceparent.length > 256) return undefined;
  const [, version = 'ff', traceId = '', spanId = '', more] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  return /^0+$/.test(traceId) || /^0+$/.test(spanId) ? undefined : { traceId, spanId };
}

/** A trace's id as a correlation id, from which `traceIdOf` finds back. */
export const correlationOf = (traceId: string): string =>
  traceId.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/**
 * The trace that a correlation id stands for. It follows from the id alone, so that whoever meets an event later, in
 * another process as well, joins its trace without anything more in the event.
 */
export function traceIdOf(correlationId: string): string {
  const hex = correlationId.replaceAll('-', '').toLowerCase();
  if (/^[0-9a-f]{32}$/.test(hex) && !/^0+$/.test(hex)) return hex;
  return hash('sha256', correlationId).slice(0, 32);
}

/** The span of a request, command or event, by its id. */
export const spanIdOf = (id: string): string => hash('sha256', `span/${id}`).slice(0, 16);
