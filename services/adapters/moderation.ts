import { AgonError, asAgonError, type Secret } from '../kernel/index.js';

export interface HttpModerationOptions {
  readonly url: string;
  readonly key?: Secret | undefined;
  readonly timeoutMs: number;
  /** What is done with a text that could not be looked at: let through, or refused for now. */
  readonly onFailure: 'open' | 'closed';
  readonly tell?: (error: unknown) => void;
}

interface Verdict {
  readonly flagged: boolean;
  readonly categories: readonly string[];
}

const ANSWER_BYTES_MAX = 64 * 1024;
const UNKNOWN: Verdict = { flagged: false, categories: [] };

/**
 * Asks a moderation API over HTTP, in the form that most of them understand: `{"input": "..."}` is answered with
 * `{"results": [{"flagged": true, "categories": {"harassment": true}}]}`.
 *
 * @example const { flagged } = await new HttpModeration({ url, timeoutMs: 2_000, onFailure: 'open' }).review({ text });
 */
export class HttpModeration {
  constructor(private readonly options: HttpModerationOptions) {}

  async review({ text }: { readonly text: string }): Promise<Verdict> {
    const { onFailure, tell = () => {} } = this.options;
    try {
      return await this.ask(text);
    } catch (error) {
      tell(error);
      if (onFailure === 'open') return UNKNOWN;
      const why = 'This text has to be looked at first, and that is not possible now. Try again later.';
      throw new AgonError('CONTENT.UNCHECKED', why, {}, { cause: error });
    }
  }

  private async ask(input: string): Promise<Verdict> {
    const { url, key, timeoutMs } = this.options;
    const response = await fetch(url, {
      method: 'POST',
      // A redirect could take the text, and the key, anywhere.
      redirect: 'error',
      headers: { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key.reveal()}` } : {}) },
      body: JSON.stringify({ input }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!response.ok) {
      await response.body?.cancel();
      throw new AgonError('MODERATION.FAILED', `The moderation API answered with ${response.status}.`);
    }
    return verdictIn(await textOf(response));
  }
}

async function textOf(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    if (bytes > ANSWER_BYTES_MAX) throw new AgonError('MODERATION.FAILED', 'The moderation API says too much.');
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

function verdictIn(text: string): Verdict {
  const [result] = resultsIn(text);
  if (typeof result?.flagged !== 'boolean') {
    throw new AgonError('MODERATION.FAILED', 'The answer of the moderation API was not understood.');
  }
  const categories = Object.entries(result.categories ?? {}).flatMap(([name, found]) =>
    found === true && /^[\w/ -]{1,60}$/.test(name) ? [name] : [],
  );
  return { flagged: result.flagged, categories };
}

function resultsIn(text: string): readonly { flagged?: unknown; categories?: Record<string, unknown> }[] {
  try {
    const { results } = JSON.parse(text) as { results?: unknown };
    return Array.isArray(results) ? results : [];
  } catch (error) {
    throw new AgonError('MODERATION.FAILED', asAgonError(error).message);
  }
}
