import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { FileArtifacts } from './artifacts.js';

const root = mkdtempSync(join(tmpdir(), 'agon-artifacts-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('artifacts in files', () => {
  let folder: string;
  let artifacts: FileArtifacts;
  beforeEach(() => {
    folder = mkdtempSync(join(root, 'a-'));
    artifacts = new FileArtifacts(folder);
  });
  const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex');
  const pathOf = (digest: string) => join(folder, digest.slice(0, 2), digest);

  it.each([
    ['text', Buffer.from('export const act = () => 4;')],
    ['nothing', Buffer.alloc(0)],
    ['all bytes', Buffer.from(Array.from({ length: 256 }, (_, i) => i))],
    ['a megabyte', Buffer.alloc(1024 * 1024, 'agon')],
  ])('return %s by its SHA-256', async (_what, content) => {
    const digest = await artifacts.put(content);
    expect(digest).toBe(sha256(content));
    expect(Buffer.from(await artifacts.get(digest)).equals(content)).toBe(true);
  });

  it('keep the same content once, also when it is stored by many at a time', async () => {
    const content = Buffer.from('the same');
    const digests = await Promise.all(Array.from({ length: 20 }, () => artifacts.put(content)));
    expect(new Set(digests).size).toBe(1);
    await artifacts.put(content);
    expect(readdirSync(join(folder, digests[0]!.slice(0, 2)))).toEqual([digests[0]]);
  });

  it('say when there is no such content', async () => {
    await expect(artifacts.get('a'.repeat(64))).rejects.toMatchObject({ code: 'ARTIFACT.MISSING' });
  });

  it('refuse content that no longer matches its digest', async () => {
    const digest = await artifacts.put(Buffer.from('honest'));
    writeFileSync(pathOf(digest), 'forged');
    await expect(artifacts.get(digest)).rejects.toMatchObject({ code: 'ARTIFACT.CORRUPT' });
  });

  it.each(['', '../../etc/passwd', 'A'.repeat(64), 'a'.repeat(63), `${'a'.repeat(64)}\n`])(
    'take "%s" for no digest',
    async (digest) => {
      await expect(artifacts.get(digest)).rejects.toMatchObject({ code: 'ARTIFACT.BAD_DIGEST' });
    },
  );
});
