export interface Address {
  /** As the official client takes it. */
  readonly url: string;
  /** What our streams' names begin with on a server that others use, too. */
  readonly prefix: string;
}

/** Takes our own option out of a connection string: `streamPrefix`, for a server that others use as well. */
export function addressOf(url: string): Address {
  const prefix = /[?&]streamPrefix=([^&]*)/i.exec(url)?.[1] ?? '';
  const rest = url.replace(/([?&])streamPrefix=[^&]*&?/i, '$1').replace(/[?&]$/, '');
  return { url: rest, prefix: decodeURIComponent(prefix) };
}

/** The address without whoever's name and key are in it, for people and logs. */
export const shownAddress = (url: string): string => url.replace(/\/\/[^@/]*@/, '//').replace(/\?.*$/, '');
