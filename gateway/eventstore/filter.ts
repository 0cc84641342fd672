import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { AgonError, type RecordedEvent } from '../../services/kernel/index.js';

export interface LogFilter {
  wants(event: Pick<RecordedEvent, 'stream' | 'type'>): boolean;
  /** After so many events looked at, a follower is told how far that was, wanted or not. */
  readonly checkpointEvents: number;
}

const PATTERN_LENGTH_MAX = 1_000;
const REPEATS_MAX = 16;
const PREFIXES_MAX = 1_000;
const WINDOW_EVENTS = 32;

/** The server's side of a filter on $all: by stream or by type, by prefixes or by a regular expression. */
export function filterOf(options: ReadReq.Options.FilterOptions): LogFilter {
  const byStream = options.getStreamIdentifier();
  const expression = byStream ?? options.getEventType();
  if (!expression) throw new AgonError('FILTER.INVALID', 'A filter is on stream names or on event types.');
  const window = options.hasMax() ? options.getMax() : WINDOW_EVENTS;
  const checkpointEvents = Math.max(1, window) * Math.max(1, options.getCheckpointintervalmultiplier());
  const fits = fitsOf(expression.getPrefixList(), expression.getRegex());
  return { wants: (event) => fits(byStream ? event.stream : event.type), checkpointEvents };
}

function fitsOf(prefixes: readonly string[], pattern: string): (name: string) => boolean {
  if (prefixes.length > PREFIXES_MAX) {
    throw new AgonError('FILTER.INVALID', `A filter has ${PREFIXES_MAX} prefixes at most.`);
  }
  if (prefixes.length > 0) return (name) => prefixes.some((prefix) => name.startsWith(prefix));
  if (pattern === '') throw new AgonError('FILTER.INVALID', 'A filter needs prefixes or a regular expression.');
  const regex = safeRegex(pattern);
  return (name) => regex.test(name);
}

/**
 * A pattern from outside runs in the arena's own process, so it must not be one that takes for ever: nothing that
 * repeats may be repeated as a whole, and only so many things may repeat at all.
 *
 * @example safeRegex('^(a+)+$') // refused: FILTER.UNSAFE
 */
export function safeRegex(pattern: string): RegExp {
  if (pattern.length > PATTERN_LENGTH_MAX) {
    throw new AgonError('FILTER.UNSAFE', `A pattern has ${PATTERN_LENGTH_MAX} characters at most.`);
  }
  let regex: RegExp;
  try {
    regex = new RegExp(pattern, 'u');
  } catch {
    try {
      regex = new RegExp(pattern);
    } catch (error) {
      throw new AgonError('FILTER.INVALID', `The pattern cannot be read: ${(error as Error).message}.`);
    }
  }
  if (repeatsTooMuch(pattern)) {
    throw new AgonError('FILTER.UNSAFE', 'The pattern repeats what repeats, or has too many repetitions. Simplify it.');
  }
  return regex;
}

/** Looks at the pattern's groups: whether one that holds a repetition or a choice is repeated itself. */
function repeatsTooMuch(pattern: string): boolean {
  const open: boolean[] = [];
  let repeats = 0;
  let closedVariable = false;
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern.charAt(i);
    const wasClosedVariable = closedVariable;
    closedVariable = false;
    if (char === '\\') {
      // A group that is to come once more is matched by trying, too.
      if (/[1-9k]/.test(pattern.charAt(++i))) return true;
    } else if (char === '[') {
      for (i++; i < pattern.length && pattern.charAt(i) !== ']'; i++) if (pattern.charAt(i) === '\\') i++;
    } else if (char === '(') {
      open.push(false);
      if (pattern.charAt(i + 1) === '?') i += 1;
    } else if (char === ')') {
      closedVariable = open.pop() ?? false;
      if (closedVariable && open.length > 0) open[open.length - 1] = true;
    } else if (char === '|') {
      if (open.length > 0) open[open.length - 1] = true;
    } else if (char === '*' || char === '+' || (char === '{' && /^\{\d+(,\d*)?\}/.test(pattern.slice(i)))) {
      if (wasClosedVariable) return true;
      repeats += 1;
      if (open.length > 0) open[open.length - 1] = true;
    }
  }
  return repeats > REPEATS_MAX;
}
