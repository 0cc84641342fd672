import { cleanDetail } from '../drivers/driver.js';
import type { EgressUsage } from '../referee.js';

/** Who calls. It is known by the socket that a call comes in on; nothing that an agent sends could change it. */
export interface Caller {
  readonly matchId: string;
  readonly seat: number;
  readonly agentId: string;
}

/** One request or tunnel, as it is logged. */
export interface EgressEntry extends Caller {
  readonly method: string;
  readonly host: string;
  readonly port: number;
  /** Without the query, which may hold what nobody else should read. */
  readonly path: string;
  readonly verdict: 'allowed' | 'refused';
  /** Why it was refused, or cut off; empty when it went well. */
  readonly code: string;
  readonly status: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly durationMs: number;
}

/** A record stays small whatever an agent asks for: the places beyond these are summed up in one line. */
const placesMax = 32;
const elsewhere = { host: '(elsewhere)', port: 0 };

/** The sums of one seat, by place. */
export class Account {
  private readonly places = new Map<string, EgressUsage>();

  add({ host, port, verdict, bytesIn, bytesOut }: EgressEntry): void {
    const asked = host === '' ? { host: '(malformed)', port: 0 } : { host, port };
    const known = this.places.has(`${asked.host}:${asked.port}`) || this.places.size < placesMax;
    const place = known ? asked : elsewhere;
    const key = `${place.host}:${place.port}`;
    const before = this.places.get(key) ?? { ...place, requests: 0, refused: 0, bytesIn: 0, bytesOut: 0 };
    this.places.set(key, {
      ...before,
      requests: before.requests + 1,
      refused: before.refused + (verdict === 'refused' ? 1 : 0),
      bytesIn: before.bytesIn + bytesIn,
      bytesOut: before.bytesOut + bytesOut,
    });
  }

  /** In the order of their names: which request ended first is nobody's business. */
  sums(): readonly EgressUsage[] {
    return [...this.places].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, usage]) => usage);
  }
}

/** @example entryLine(entry) // 'egress GET api.example.com:443/v1/chat allowed 200, 512 B out, 2048 B in, 130 ms' */
export function entryLine(entry: EgressEntry) {
  const { method, host, port, path, verdict, code, status } = entry;
  const what = host === '' ? 'something unreadable' : `${method} ${host}:${port}${path}`;
  const how = `${verdict} ${status}${code ? ` ${code}` : ''}`;
  return cleanDetail(`egress ${what} ${how}, ${entry.bytesOut} B out, ${entry.bytesIn} B in, ${entry.durationMs} ms`);
}
