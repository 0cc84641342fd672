import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { RE2JS } from 're2js';
import { AgonError, type RecordedEvent } from '../../services/kernel/index.js';

export interface LogFilter {
  wants(event: Pick<RecordedEvent, 'stream' | 'type'>): boolean;
  /** After so many events looked at, a follower is told how far that was, wanted or not. */
  readonly checkpointEvents: number;
}

const PATTERN_LENGTH_MAX = 1_000;
/** What is counted in braces is written out when it is compiled. */
const COUNTED_MAX = 256;
const PROGRAM_MAX = 4_096;
const PREFIXES_MAX = 1_000;
const WINDOW_EVENTS = 32;

/** The server's side of a filter on $all: by stream or by type, by prefixes or by a regular expression. */
export function filterOf(options: ReadReq.Options.FilterOptions): LogFilter {
  const byStream = options.getStreamIdentifier();
  const expression = byStream ?? options.getEventType();
  if (!expression) throw new AgonError('FILTER.INVALID', 'A filter is on stream names or on event types.');
  if (options.getCheckpointintervalmultiplier() === 0) {
    throw new AgonError('FILTER.INVALID', 'A checkpoint comes after one window of events or more, not after none.');
  }
  const window = options.hasMax() ? options.getMax() : WINDOW_EVENTS;
  const checkpointEvents = Math.max(1, window) * options.getCheckpointintervalmultiplier();
  const fits = fitsOf(expression.getPrefixList(), expression.getRegex());
  return { wants: (event) => fits(byStream ? event.stream : event.type), checkpointEvents };
}

function fitsOf(prefixes: readonly string[], pattern: string): (name: string) => boolean {
  if (prefixes.length > PREFIXES_MAX) {
    throw new AgonError('FILTER.INVALID', `A filter has ${PREFIXES_MAX} prefixes at most.`);
  }
  if (prefixes.length > 0) return (name) => prefixes.some((prefix) => name.startsWith(prefix));
  if (pattern === '') throw new AgonError('FILTER.INVALID', 'A filter needs prefixes or a regular expression.');
  return linearTest(pattern);
}

/**
 * A pattern from outside runs in the arena's own process, on every event, so it must not be one that takes for ever. It
 * runs on an engine that never goes back in a name: the time it takes grows with the name and the pattern, and no faster.
 * Such an engine cannot look around or remember groups. One exception is made at the beginning, because clients put it
 * there by themselves to leave system events out: `^(?!...)` is asked as a question of its own.
 *
 * @example linearTest('^(a+)+$')('aaaa!') // false, at once
 */
export function linearTest(pattern: string): (name: string) => boolean {
  if (pattern.length > PATTERN_LENGTH_MAX) {
    throw new AgonError('FILTER.UNSAFE', `A pattern has ${PATTERN_LENGTH_MAX} characters at most.`);
  }
  const { without, rest } = excluded(pattern);
  const wanted = compiled(rest);
  if (without === undefined) return (name) => wanted.test(name);
  const unwanted = compiled(`^(?:${without})`);
  return (name) => !unwanted.test(name) && wanted.test(name);
}

function compiled(pattern: string): RE2JS {
  const counted = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].map(([, least, most]) => Number(most || least));
  if (counted.reduce((sum, count) => sum + count, 0) > COUNTED_MAX) throw tooLarge();
  let regex: RE2JS;
  try {
    regex = RE2JS.compile(pattern);
  } catch (error) {
    throw new AgonError('FILTER.INVALID', `The pattern cannot be used: ${(error as Error).message}.`);
  }
  if (regex.programSize() > PROGRAM_MAX) throw tooLarge();
  return regex;
}

const tooLarge = () => new AgonError('FILTER.UNSAFE', 'The pattern repeats too much by numbers. Simplify it.');

/** Takes `^(?!without)rest` apart; what is not of that form stays as it is. */
function excluded(pattern: string): { without?: string; rest: string } {
  if (!pattern.startsWith('^(?!')) return { rest: pattern };
  let [depth, end] = [1, 4];
  let choice = false;
  for (let i = 4; i < pattern.length; i++) {
    const char = pattern.charAt(i);
    if (char === '\\') i += 1;
    else if (char === '[') {
      for (i++; i < pattern.length && pattern.charAt(i) !== ']'; i++) if (pattern.charAt(i) === '\\') i++;
    } else if (char === '(') depth += 1;
    else if (char === ')') {
      depth -= 1;
      if (depth === 0 && end === 4) end = i;
    } else if (char === '|' && depth === 0) choice = true;
  }
  // What comes after a choice is not bound to the beginning.
  if (end === 4 || choice) return { rest: pattern };
  return { without: pattern.slice(4, end), rest: `^${pattern.slice(end + 1)}` };
}
