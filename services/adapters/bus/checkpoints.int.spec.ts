import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OwnDatabase, ownDatabase } from '../../../ops/engines/shared.contract.js';
import type { Checkpoints, DeadLetter } from '../../kernel/index.js';
import { LmdbCheckpoints, MemoryCheckpoints, PostgresCheckpoints } from './checkpoints.js';

const root = mkdtempSync(join(tmpdir(), 'agon-checkpoints-'));
let database: OwnDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await ownDatabase();
  pool = new Pool({ connectionString: database.url }).setMaxListeners(0);
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
  rmSync(root, { recursive: true, force: true });
});
const newPath = () => join(mkdtempSync(join(root, 'c-')), 'checkpoints.mdb');

const letter = (group: string, position: number, attempts = 3): DeadLetter => ({
  group,
  position,
  eventId: `event-${position}`,
  code: 'TEST.BROKEN',
  message: 'It broke: "ü"',
  attempts,
});

describe.each<[string, () => Checkpoints & { close?(): Promise<void> }]>([
  ['memory', () => new MemoryCheckpoints()],
  ['lmdb', () => new LmdbCheckpoints(newPath())],
  ['postgres', () => new PostgresCheckpoints(pool)],
])('checkpoints in %s', (_name, open) => {
  it('start at 0, keep what was saved last, and keep groups apart', async () => {
    const checkpoints = open();
    expect(await checkpoints.load('a')).toBe(0);
    await checkpoints.save('a', 7);
    await checkpoints.save('a', 9);
    await checkpoints.save('a.b', 4);
    expect(await Promise.all(['a', 'a.b', 'b'].map((group) => checkpoints.load(group)))).toEqual([9, 4, 0]);
    await checkpoints.reset('a');
    expect(await Promise.all(['a', 'a.b'].map((group) => checkpoints.load(group)))).toEqual([0, 4]);
    await checkpoints.close?.();
  });

  it('keep dead letters by group, and one letter for one event however often it is buried', async () => {
    const checkpoints = open();
    for (const each of [letter('a', 1), letter('a', 2), letter('ab', 3), letter('a', 2, 5)])
      await checkpoints.bury(each);
    const sorted = async (group?: string) =>
      [...(await checkpoints.deadLetters(group))].sort((a, b) => a.position - b.position);
    expect(await sorted('a')).toEqual([letter('a', 1), letter('a', 2, 5)]);
    expect(await sorted('ab')).toEqual([letter('ab', 3)]);
    for (const eventId of [letter('a', 1).eventId, 'nobody']) await checkpoints.unbury('a', eventId);
    expect(await sorted()).toEqual([letter('a', 2, 5), letter('ab', 3)]);
    await checkpoints.bury(letter('a', 1));
    expect(await sorted()).toEqual([letter('a', 1), letter('a', 2, 5), letter('ab', 3)]);
    expect(await sorted('none')).toEqual([]);
    await checkpoints.close?.();
  });
});

it('checkpoints in lmdb are still there after a restart', async () => {
  const path = newPath();
  const before = new LmdbCheckpoints(path);
  await before.save('group', 41);
  await before.bury(letter('group', 40));
  await before.close();
  const after = new LmdbCheckpoints(path);
  expect(await after.load('group')).toBe(41);
  expect(await after.deadLetters()).toEqual([letter('group', 40)]);
  await after.close();
});

it('checkpoints in postgres can be used by many who start at once', async () => {
  await pool.query('DROP SCHEMA IF EXISTS bus CASCADE');
  const members = Array.from({ length: 8 }, () => new PostgresCheckpoints(pool));
  await Promise.all(members.map((checkpoints, i) => checkpoints.save(`group-${i}`, i)));
  expect(await members[0]?.load('group-7')).toBe(7);
});
