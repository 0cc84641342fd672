import { AgonError } from '../../kernel/index.js';

export interface Address {
  /** As the official client takes it. */
  readonly url: string;
  /** What our streams' names begin with on a server that others use, too. */
  readonly prefix: string;
}

/**
 * Takes our own option out of a connection string: `streamPrefix`, for a server that others use as well. Such servers go by
 * two names, `kurrentdb://` being the newer one; our client knows the older.
 */
export function addressOf(url: string): Address {
  const prefix = /[?&]streamPrefix=([^&]*)/i.exec(url)?.[1] ?? '';
  const [, preference = 'leader'] = /[?&]nodePreference=([^&]*)/i.exec(url) ?? [];
  if (!/^leader$/i.test(preference)) {
    const why = `nodePreference=${preference} would read what other nodes do not have yet: what was acknowledged has to be seen.`;
    throw new AgonError('CONFIG.INVALID', `${why} Leave it out: Agon uses the leader.`);
  }
  const rest = url.replace(/([?&])streamPrefix=[^&]*&?/i, '$1').replace(/[?&]$/, '');
  return { url: rest.replace(/^kurrentdb(?=[+:])/, 'esdb'), prefix: decodeURIComponent(prefix) };
}

/** The address without whoever's name and key are in it, for people and logs. */
export const shownAddress = (url: string): string => url.replace(/\/\/[^@/]*@/, '//').replace(/\?.*$/, '');
