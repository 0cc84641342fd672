import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Person } from '../../accounts/index.js';
import { seededIds } from '../../kernel/index.js';
import { FileVault } from './file.js';

const root = mkdtempSync(join(tmpdir(), 'agon-vault-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const ids = seededIds('vault');
const folder = () => {
  const path = mkdtempSync(join(root, 'v-'));
  return { people: join(path, 'people'), keys: join(path, 'keys') };
};
const subject = { issuer: 'https://id.example', subject: 'subject-4711' };
const ada: Person = {
  accountId: 'ada-of-london',
  name: 'Ada Lovelace',
  email: 'ada@example.org',
  passwordHash: '$argon2id$of-ada',
  totp: { secret: 'GEZDGNBVGY3TQOJQ', confirmed: true, lastStep: 7 },
  identities: [subject],
};

/** Every byte of every file below a folder. */
function bytesIn(path: string): string {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name + readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

describe('a vault', () => {
  it('keeps people over a restart, and finds them by who vouches for them', async () => {
    const [paths, id] = [folder(), ids()];
    expect(await new FileVault(paths).read(id)).toBeUndefined();
    await new FileVault(paths).write(id, ada);
    await new FileVault(paths).write(id, { ...ada, email: 'other@example.org' });
    const vault = new FileVault(paths);
    expect(await vault.read(id)).toEqual({ ...ada, email: 'other@example.org' });
    expect(await vault.find(subject)).toBe(id);
    expect(await vault.find({ ...subject, subject: 'another' })).toBeUndefined();
  });

  it('writes nothing in clear, and nothing that others may read', async () => {
    const [paths, id] = [folder(), ids()];
    await new FileVault(paths).write(id, ada);
    const bytes = bytesIn(paths.people);
    for (const secret of [ada.accountId, 'Lovelace', 'example.org', 'argon2', 'GEZDGNBV', '4711', 'id.example']) {
      expect(bytes).not.toContain(secret);
    }
    expect(statSync(join(paths.people, id)).mode & 0o077).toBe(0);
    expect(statSync(join(paths.keys, id)).mode & 0o077).toBe(0);
  });

  it('cannot read a person any more who was erased, not even from a copy of the records made before', async () => {
    const [paths, id, other] = [folder(), ids(), ids()];
    const vault = new FileVault(paths);
    await vault.write(id, ada);
    await vault.write(other, { ...ada, accountId: 'bob', identities: [] });
    const copy = join(root, 'backup');
    cpSync(paths.people, copy, { recursive: true });
    await vault.erase(id);
    await vault.erase(id);
    await expect(vault.read(id)).resolves.toBeUndefined();
    expect(await vault.find(subject)).toBeUndefined();
    rmSync(paths.people, { recursive: true });
    cpSync(copy, paths.people, { recursive: true });
    const restored = new FileVault(paths);
    await expect(restored.read(id)).resolves.toBeUndefined();
    expect(await restored.read(other)).toMatchObject({ accountId: 'bob' });
    // The same id, should it ever come again, has another key: the old record stays closed.
    await restored.write(id, { ...ada, email: 'new@example.org' });
    writeFileSync(join(paths.people, id), readFileSync(join(copy, id)));
    await expect(restored.read(id)).rejects.toMatchObject({ code: 'VAULT.UNREADABLE' });
  });

  it('notices a record that was changed or put in the place of another', async () => {
    const [paths, id, other] = [folder(), ids(), ids()];
    const vault = new FileVault(paths);
    await vault.write(id, ada);
    await vault.write(other, ada);
    const file = join(paths.people, id);
    const good = readFileSync(file);
    const bad = Buffer.from(good);
    bad[bad.length - 1] = (bad.at(-1) ?? 0) ^ 1;
    writeFileSync(file, bad);
    await expect(vault.read(id)).rejects.toMatchObject({ code: 'VAULT.UNREADABLE' });
    writeFileSync(file, readFileSync(join(paths.people, other)));
    await expect(vault.read(id)).rejects.toMatchObject({ code: 'VAULT.UNREADABLE' });
    writeFileSync(file, 'x');
    await expect(vault.read(id)).rejects.toMatchObject({ code: 'VAULT.UNREADABLE' });
    await vault.erase(id);
    expect(await vault.read(id)).toBeUndefined();
    await expect(vault.read('../../etc/passwd')).rejects.toMatchObject({ code: 'VAULT.UNKNOWN' });
  });
});
