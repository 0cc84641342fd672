import { isDeepStrictEqual } from 'node:util';
import type { Catalogue } from './catalogue.js';
import { checkedData, upcasterOf } from './catalogue.js';
import { type RecordedEvent, recomputeHash, STREAM_NAME } from './event.js';

const FILE = /^(\w+)\.v(\d+)\.json$/;

/**
 * What is wrong with a context's golden files, as sentences. One file per event type and version ever written, a whole
 * sealed envelope: whoever changes a schema, an upcaster or the sealing so that old events no longer read as they were
 * meant, hears of it here. The files are evidence and are never edited, which their hash sees to.
 */
export function goldenFaults(catalogue: Catalogue, files: ReadonlyMap<string, string>): string[] {
  const faults: string[] = [];
  for (const [type, spec] of Object.entries(catalogue.specs)) {
    for (let version = 1; version <= spec.version; version++) {
      const file = `${type}.v${version}.json`;
      const text = files.get(file);
      if (text === undefined) faults.push(`${file} is missing`);
      else faults.push(...eventFaults(catalogue, type, version, text).map((fault) => `${file} ${fault}`));
    }
  }
  for (const file of files.keys()) {
    const [, type = '', version = ''] = FILE.exec(file) ?? [];
    const known = catalogue.specs[type]?.version ?? 0;
    if (Number(version) < 1 || Number(version) > known) faults.push(`${file} belongs to no event of this build`);
  }
  return faults;
}

function eventFaults(catalogue: Catalogue, type: string, version: number, text: string): string[] {
  const event = JSON.parse(text) as RecordedEvent;
  if (event.type !== type || event.version !== version) return [`holds ${event.type} version ${event.version}`];
  if (!STREAM_NAME.test(event.stream)) return [`is on no stream: ${event.stream}`];
  if (recomputeHash(event) !== event.hash) return ['does not match its hash: golden files are never edited'];
  try {
    const current = upcasterOf([catalogue])(event);
    const { data } = checkedData(catalogue, current);
    // A schema that drops a field would forget what was recorded.
    return includes(data, current.data) ? [] : ['holds fields that the current schema drops'];
  } catch (error) {
    return [`cannot be read any more: ${String(error)}`];
  }
}

function includes(whole: unknown, part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return isDeepStrictEqual(whole, part);
  if (typeof whole !== 'object' || whole === null || Array.isArray(whole) !== Array.isArray(part)) return false;
  return Object.entries(part).every(([key, value]) => includes((whole as Record<string, unknown>)[key], value));
}
