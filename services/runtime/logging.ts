import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { type Logger, pino, stdSerializers, stdTimeFunctions } from 'pino';
import type { Config } from './settings.js';

const HIDDEN = '[redacted]';
/** Fields whose value is nobody's to read, whatever it is and however deep. */
const SECRET_KEY =
  /authori[sz]ation|cookie|passw|passphrase|secret|token|api.?key|private.?key|signature|credential|e-?mail|otp/i;
/** What gives itself away in any text: in a message, in a stack, in an address. */
const SECRET_TEXT: readonly [pattern: RegExp, instead: string][] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]+/gi, `$1 ${HIDDEN}`],
  [/\bagon_[a-z0-9-]{1,39}_[0-9a-f]{12}_[0-9a-f]{64}/g, HIDDEN],
  [/\bagonr_[0-9a-f]{32}_[0-9a-f]{64}/g, HIDDEN],
  [/\b(sk|rk|pk)_(test|live)_\w+/g, HIDDEN],
  [/\bwhsec_[\w+/=-]+/g, HIDDEN],
  [/\beyJ[\w-]+\.[\w-]+(\.[\w-]*)?/g, HIDDEN],
  [/\bt=\d+(,v\d=[0-9a-f]+)+/gi, HIDDEN],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----/gs, HIDDEN],
  [/([?&](?:[\w-]*token|key|secret|code|password|signature)=)[^&\s"'\\]+/gi, `$1${HIDDEN}`],
  [/:\/\/[^\s/@"'\\]+@/g, `://${HIDDEN}@`],
  [/[\w.%+-]{1,64}@[\w-]+(\.[\w-]+)+/g, HIDDEN],
];
const DEPTH_MAX = 6;
const ITEMS_MAX = 64;

/** JSON has escaped what is below a space. The rest of what moves a cursor, ends a line or turns text around is done here. */
const UNSEEN = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const CONTROL = /\p{Cc}/gu;
/** Half of a character, as JSON writes it where pino has not replaced it yet: whether it has depends on the Node. */
const HALF = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/gi;
const whole = (json: string) => json.replace(HALF, '$1\ufffd');
const escaped = (text: string) => text.replace(UNSEEN, unicode);
const unicode = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

const hidden = (text: string) => SECRET_TEXT.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), text);

/** The same value without what is in secret fields; errors as plain fields, and nothing without bounds. */
function stripped(value: unknown, depth = 0): unknown {
  if (typeof value === 'bigint') return `${value}`;
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= DEPTH_MAX) return '[deep]';
  if (value instanceof Error) return stripped({ ...stdSerializers.err(value) }, depth);
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return (value as { toJSON(): unknown }).toJSON();
  if (Array.isArray(value)) return value.slice(0, ITEMS_MAX).map((item) => stripped(item, depth + 1));
  const fields = Object.entries(value).slice(0, ITEMS_MAX);
  return Object.fromEntries(
    fields.map(([key, item]) => [key, SECRET_KEY.test(key) ? HIDDEN : stripped(item, depth + 1)]),
  );
}

export interface LogOptions {
  readonly level: Config['logLevel'];
  /** Lines for people instead of JSON. */
  readonly people?: boolean;
  /** The file descriptor that lines go to; standard error when left out. */
  readonly to?: number;
  readonly write?: (line: string) => void;
}

/**
 * The log of a process: a line of JSON each, or a line for people on a terminal. Whatever is put into it, a line stays
 * one line, moves no cursor, and holds no secret that can be told from other text.
 */
export function createLog({ level, to = 2, people = isatty(to), write = toDescriptor(to) }: LogOptions): Logger {
  const line = (text: string) =>
    write(`${escaped(hidden(people ? forPeople(text) : whole(text.trimEnd()))).toWellFormed()}\n`);
  return pino(
    {
      level,
      timestamp: stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => stripped(fields) as Record<string, unknown>,
      },
      // Errors are plain by now.
      serializers: { err: (err: unknown) => err },
    },
    { write: line },
  );
}

const SLOW_READER_MS = 20;

/** Waits for a reader that is slow, loses nothing when the process ends, and lets go of a terminal that has closed. */
function toDescriptor(descriptor: number): (line: string) => void {
  const asleep = new Int32Array(new SharedArrayBuffer(4));
  return (line) => {
    let rest = Buffer.from(line);
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(descriptor, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        Atomics.wait(asleep, 0, 0, SLOW_READER_MS);
      }
    }
  };
}

/** @example 12:00:01 WARN  a delivery failed and is tried again  group=policy.escrow err="STORE.FULL: no room" */
function forPeople(json: string): string {
  const { level, time, pid, hostname, msg = '', ...fields } = JSON.parse(json) as Record<string, unknown>;
  const rest = Object.entries(fields).map(([key, value]) => `${key}=${shortly(value)}`);
  const head = `${String(time).slice(11, 19)} ${String(level).toUpperCase().padEnd(5)} ${String(msg)}`;
  return [head, ...(rest.length > 0 ? [rest.join(' ')] : [])].join('  ').replace(CONTROL, unicode);
}

function shortly(value: unknown): string {
  if (typeof value === 'object' && value !== null && 'message' in value) {
    const { code, message } = value as { code?: unknown; message: unknown };
    return JSON.stringify(code === undefined ? String(message) : `${String(code)}: ${String(message)}`);
  }
  return typeof value === 'string' && /^[\w.:/-]+$/.test(value) ? value : JSON.stringify(value);
}
