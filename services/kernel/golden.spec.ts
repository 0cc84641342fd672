import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { contexts } from '../index.js';
import { type Catalogue, checkedData, compiled, defineEvents, upcasterOf } from './catalogue.js';
import type { RecordedEvent, SealedEvent } from './event.js';
import { recomputeHash, STREAM_NAME, seal } from './event.js';
import { chain } from './fixtures.js';

const FILE = /^(\w+)\.v(\d+)\.json$/;

/**
 * What is wrong with a context's golden files, as sentences. One file per event type and version ever written, a whole
 * sealed envelope: whoever changes a schema, an upcaster or the sealing so that old events no longer read as they were
 * meant, hears of it here. The files are evidence and are never edited, which their hash sees to.
 */
function goldenFaults(catalogue: Catalogue, files: ReadonlyMap<string, string>): string[] {
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

const services = dirname(dirname(fileURLToPath(import.meta.url)));

function filesOf(context: string): Map<string, string> {
  const folder = join(services, context, 'golden');
  return new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
}

const catalogues = contexts.map((context) => context.events as Catalogue);

describe('golden events', () => {
  it.each(catalogues)('of $context are all there and still read as they were meant', (catalogue) => {
    expect(goldenFaults(catalogue, filesOf(catalogue.context))).toEqual([]);
  });

  it.each(catalogues)('of $context are written so that a change shows in a diff', (catalogue) => {
    for (const [file, text] of filesOf(catalogue.context)) {
      expect(`${file}\n${text}`).toBe(`${file}\n${JSON.stringify(JSON.parse(text), null, 2)}\n`);
    }
  });
});

describe('a compiled schema', () => {
  const json = fc.jsonValue({ maxDepth: 2 });
  const odd = fc.oneof(json, fc.constantFrom(undefined, Number.NaN, '', '0', '-1', -1, 0.5, [], {}, new Date(0)));

  /** The same data with something else in one place, at any depth, or with one more field. */
  function altered(data: unknown, seeds: readonly number[], other: unknown): unknown {
    const [seed = 0, ...rest] = seeds;
    if (typeof data !== 'object' || data === null || seeds.length === 0) return other;
    const keys = [...Object.keys(data), 'more'];
    const key = keys[seed % keys.length] as string;
    if (Array.isArray(data)) return data.map((item, i) => (`${i}` === key ? altered(item, rest, other) : item));
    return { ...data, [key]: altered((data as Record<string, unknown>)[key], rest, other) };
  }

  it.each(catalogues)('of $context answers what zod itself answers', (catalogue) => {
    const upcast = upcasterOf([catalogue]);
    for (const text of filesOf(catalogue.context).values()) {
      const { type, data } = upcast(JSON.parse(text) as RecordedEvent);
      const { schema } = catalogue.specs[type] as { schema: z.ZodType };
      const same = (input: unknown) => {
        const [plain, fast] = [schema.safeParse(input), compiled(schema).safeParse(input)];
        expect(fast.success).toBe(plain.success);
        // As text too: the order of the fields is what is stored.
        expect(JSON.stringify(fast.data)).toBe(JSON.stringify(plain.data));
        expect(fast.data).toStrictEqual(plain.data);
        expect(fast.error?.issues).toEqual(plain.error?.issues);
      };
      same(data);
      fc.assert(
        fc.property(fc.array(fc.nat(40), { maxLength: 3 }), odd, (seeds, other) => same(altered(data, seeds, other))),
      );
    }
  });
});

describe('the check of golden events', () => {
  const events = defineEvents('sample', {
    Renamed: {
      version: 2,
      schema: z.object({ label: z.string().min(2), note: z.string().default('') }),
      upcast: { 1: ({ name }) => ({ label: name }) },
    },
  });
  const golden = (version: number, data: object) => {
    const [{ hash: _hash, ...open }] = chain('sample-a', 1) as [SealedEvent];
    return JSON.stringify(seal({ ...open, type: 'Renamed', version, data }));
  };
  const good = () =>
    new Map([
      ['Renamed.v1.json', golden(1, { name: 'ada' })],
      ['Renamed.v2.json', golden(2, { label: 'ada' })],
    ]);
  const faults = (change: (files: Map<string, string>) => unknown) => {
    const files = good();
    change(files);
    return goldenFaults(events, files);
  };
  const edited = (text: string | undefined, change: object, rehash = false) => {
    const event = { ...JSON.parse(text ?? '{}'), ...change };
    return JSON.stringify(rehash ? { ...event, hash: recomputeHash(event) } : event);
  };

  it('passes a whole set', () => {
    expect(faults(() => {})).toEqual([]);
  });

  it.each<[string, (files: Map<string, string>) => unknown, RegExp]>([
    ['a missing file', (files) => files.delete('Renamed.v1.json'), /^Renamed\.v1\.json is missing/],
    ['an unknown type', (files) => files.set('Moved.v1.json', '{}'), /^Moved\.v1\.json belongs to no event/],
    ['an unknown version', (files) => files.set('Renamed.v3.json', '{}'), /^Renamed\.v3\.json belongs to no event/],
    ['a stray file', (files) => files.set('notes.txt', ''), /^notes\.txt belongs to no event/],
    [
      'an edited file',
      (files) => files.set('Renamed.v2.json', edited(files.get('Renamed.v2.json'), { data: { label: 'eve' } })),
      /^Renamed\.v2\.json does not match its hash/,
    ],
    [
      'a file under the wrong name',
      (files) => files.set('Renamed.v1.json', files.get('Renamed.v2.json') ?? ''),
      /^Renamed\.v1\.json holds Renamed version 2/,
    ],
    [
      'a version that no longer fits the schema after upcasting',
      (files) => files.set('Renamed.v1.json', golden(1, { name: 'a' })),
      /^Renamed\.v1\.json cannot be read any more/,
    ],
    [
      'a field that the schema has forgotten',
      (files) => files.set('Renamed.v2.json', golden(2, { label: 'ada', colour: 'red' })),
      /^Renamed\.v2\.json holds fields that the current schema drops/,
    ],
    [
      'an envelope on no stream',
      (files) => files.set('Renamed.v2.json', edited(files.get('Renamed.v2.json'), { stream: '' }, true)),
      /^Renamed\.v2\.json is on no stream/,
    ],
  ])('reports %s', (_what, change, fault) => {
    expect(faults(change)).toEqual([expect.stringMatching(fault)]);
  });
});
