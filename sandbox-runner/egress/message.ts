import type { IncomingMessage } from 'node:http';
import { Transform } from 'node:stream';
import { isAgonError } from '../../services/kernel/index.js';
import { Refusal } from './target.js';

const hopByHop = /^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|proxy-.*)$/;

/** The pairs of a head whose names are for the whole way, without those that were named as being for one hop. */
export function endToEnd(raw: readonly string[]): [name: string, value: string][] {
  const pairs = raw.flatMap((name, i): [string, string][] =>
    i % 2 === 0 ? [[name.toLowerCase(), raw[i + 1] ?? '']] : [],
  );
  const named = pairs.flatMap(([name, value]) => (name === 'connection' ? value.split(',') : []));
  const dropped = new Set(named.map((name) => name.trim().toLowerCase()));
  return pairs.filter(([name]) => !hopByHop.test(name) && !dropped.has(name));
}

/** One length, or chunks, and nothing in between: two readings of where a message ends are how requests are smuggled. */
export function assertFraming({ headers, rawHeaders, httpVersion }: IncomingMessage): void {
  const count = (wanted: string) => rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === wanted).length;
  const coding = headers['transfer-encoding'];
  const clear =
    /^1\.[01]$/.test(httpVersion) &&
    count('content-length') + count('transfer-encoding') <= 1 &&
    count('host') <= 1 &&
    (coding === undefined || coding.toLowerCase() === 'chunked') &&
    headers.upgrade === undefined;
  if (!clear) throw new Refusal('BAD_REQUEST', 400, 'The head does not say in one way where the message ends.');
}

export const explained = (refusal: Refusal): Record<string, string> => ({
  'content-type': 'application/json',
  connection: 'close',
  'x-agon-egress': refusal.code,
});

export const explain = ({ code, message }: Refusal): string => JSON.stringify({ error: { code, message } });

/** Secrets become stars, one for each character, so that lengths stay what they were said to be. */
export function blot(bytes: Buffer, forms: readonly Buffer[]): Buffer {
  let clean = bytes;
  for (const form of forms) {
    for (let at = clean.indexOf(form); at >= 0; at = clean.indexOf(form, at + form.length)) {
      if (clean === bytes) clean = Buffer.from(bytes);
      clean.fill('*', at, at + form.length);
    }
  }
  return clean;
}

/** Blots out secrets in a stream, also where one lies across two chunks. */
export function blotting(forms: readonly Buffer[]): Transform {
  const overlap = Math.max(1, ...forms.map((form) => form.length)) - 1;
  let held: Buffer = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const clean = blot(held.length > 0 ? Buffer.concat([held, chunk]) : chunk, forms);
      const cut = Math.max(0, clean.length - overlap);
      held = clean.subarray(cut);
      done(null, clean.subarray(0, cut));
    },
    flush(done) {
      done(null, held);
    },
  });
}

export const gone = (): Refusal => new Refusal('GONE', 499, 'The agent went away.');
export const tooSlow = (what: string): Refusal => new Refusal('TOO_SLOW', 408, `It took too long: ${what}.`);

const untrusted = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_CERT|ERR_SSL_)/;

/** What an upstream or its connection did wrong is told by kind alone: its words are not ours to pass on. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const code = String((error as { code?: unknown } | undefined)?.code ?? 'unknown');
  if (untrusted.test(code)) {
    return new Refusal('UPSTREAM_UNTRUSTED', 502, `The certificate of the upstream cannot be trusted (${code}).`);
  }
  if (isAgonError(error)) return new Refusal('UPSTREAM_FAILED', 502, error.message);
  return new Refusal('UPSTREAM_FAILED', 502, `The upstream does not answer as it should (${code}).`);
}
