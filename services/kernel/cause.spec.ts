import { describe, expect, it } from 'vitest';
import { callerOf, correlationOf, randomIds, spanIdOf, traceIdOf } from './index.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('traceparent', () => {
  it.each([
    ['of version 0', `00-${TRACE}-${SPAN}-01`],
    ['that is not sampled', `00-${TRACE}-${SPAN}-00`],
    ['of a later version, with more behind it', `01-${TRACE}-${SPAN}-01-more`],
  ])('is understood: one %s', (_name, header) => {
    expect(callerOf(header)).toEqual({ traceId: TRACE, spanId: SPAN });
  });

  it.each([
    ['none', undefined],
    ['several', [`00-${TRACE}-${SPAN}-01`]],
    ['an empty one', ''],
    ['a version that never is', `ff-${TRACE}-${SPAN}-01`],
    ['more behind version 0', `00-${TRACE}-${SPAN}-01-more`],
    ['capitals', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a line more', `00-${TRACE}-${SPAN}-01\n`],
    ['far too much', `01-${TRACE}-${SPAN}-01-${'x'.repeat(9_999)}`],
  ])('is left aside: %s', (_name, header) => {
    expect(callerOf(header)).toBeUndefined();
  });
});

describe('a trace', () => {
  it('is found again from its correlation id', () => {
    expect(correlationOf(TRACE)).toBe('4bf92f35-77b3-4da6-a3ce-929d0e0e4736');
    expect(traceIdOf(correlationOf(TRACE))).toBe(TRACE);
  });

  it('has an id that is always valid, whatever the correlation id', () => {
    const odd = ['', 'order-7', '00000000-0000-0000-0000-000000000000', 'ü\n', randomIds()];
    for (const id of odd) expect(traceIdOf(id)).toMatch(/^(?!0+$)[0-9a-f]{32}$/);
    expect(new Set(odd.map(traceIdOf)).size).toBe(odd.length);
  });

  it('has a span for each id', () => {
    expect(spanIdOf('a')).toMatch(/^[0-9a-f]{16}$/);
    expect(spanIdOf('a')).not.toBe(spanIdOf('b'));
  });
});
