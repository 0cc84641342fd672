import { type ClientRequest, request as plain } from 'node:http';
import { request as secure } from 'node:https';
import type { PostResult } from '../webhooks/index.js';

/** How long a receiver may take, and how much of its answer is looked at. */
const LIMITS = { totalMs: 10_000, answerBytes: 16 * 1024 } as const;

interface PostOptions {
  /** The address that a host's name stands for, once it is known to be one that may be reached. */
  addressOf(host: string): Promise<{ readonly address: string; readonly family: number }>;
  /** Whether addresses without TLS may be called. */
  readonly allowPlain: boolean;
  readonly limits?: { readonly totalMs: number; readonly answerBytes: number };
}

/**
 * Calls an endpoint that a stranger chose. The name is resolved once and the connection goes to the address that was
 * checked, so a name cannot lead elsewhere a moment later; redirects are not followed, and an answer is bounded.
 */
export function webhookPost({ addressOf, allowPlain, limits = LIMITS }: PostOptions) {
  return async (text: string, headers: Readonly<Record<string, string>>, body: string): Promise<PostResult> => {
    const url = new URL(text);
    if (url.protocol !== 'https:' && !allowPlain) return { why: 'the address is not https' };
    const host = url.hostname.replace(/^\[|\]$/g, '');
    try {
      const { address, family } = await addressOf(host);
      const send = url.protocol === 'https:' ? secure : plain;
      return await new Promise<PostResult>((resolve, reject) => {
        const sending = send(url, {
          method: 'POST',
          headers: { ...headers, 'content-length': Buffer.byteLength(body) },
          agent: false,
          signal: AbortSignal.timeout(limits.totalMs),
          // Called for names alone; an address was checked as it stands.
          lookup: (_name, { all }, done) => (all ? done(null, [{ address, family }]) : done(null, address, family)),
        });
        answered(sending, limits.answerBytes, resolve, reject);
        sending.end(body);
      });
    } catch (error) {
      const { name, message } = error as Error;
      return {
        why: name === 'AbortError' || name === 'TimeoutError' ? `no answer within ${limits.totalMs} ms` : message,
      };
    }
  };
}

function answered(
  sending: ClientRequest,
  bytesMax: number,
  resolve: (posted: PostResult) => void,
  reject: (error: Error) => void,
): void {
  sending.on('error', reject);
  sending.on('response', (response) => {
    const { statusCode: status = 0 } = response;
    let bytes = 0;
    const done = () => resolve({ status, why: `it answered ${status}` });
    response.on('data', (piece: Buffer) => {
      bytes += piece.length;
      if (bytes <= bytesMax) return;
      // The answer is known; what else it wants to say is not.
      done();
      sending.destroy();
    });
    response.on('end', done).on('error', reject);
  });
}
