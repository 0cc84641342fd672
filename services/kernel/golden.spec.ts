import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { contexts } from '../index.js';
import { type Catalogue, defineEvents } from './catalogue.js';
import type { SealedEvent } from './event.js';
import { recomputeHash, seal } from './event.js';
import { chain } from './fixtures.js';
import { goldenFaults } from './golden.js';

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
