import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { link, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Identity, type Person, personSchema, type Vault } from '../../accounts/index.js';
import { AgonError, isAgonError } from '../../kernel/index.js';

const ALGORITHM = 'aes-256-gcm';
const [NONCE_BYTES, TAG_BYTES, KEY_BYTES] = [12, 16, 32];
const PERSON_ID = /^[0-9a-f-]{36}$/;

/**
 * A file a person, sealed with a key of that person alone, which is kept in another folder. Destroying the key is what
 * erases: the sealed file may have been copied to who knows where.
 */
export class FileVault implements Vault {
  private readonly people: string;
  private readonly keys: string;
  private readonly index: string;

  constructor(folder: { readonly people: string; readonly keys: string }) {
    [this.people, this.keys, this.index] = [folder.people, folder.keys, join(folder.people, 'index')];
    for (const path of [this.people, this.keys, this.index]) mkdirSync(path, { recursive: true, mode: 0o700 });
  }

  async read(personId: string): Promise<Person | undefined> {
    const key = await this.key(personId);
    const sealed = await contentOf(this.file(personId));
    if (!key || !sealed) return undefined;
    return personSchema.parse(JSON.parse(unseal(key, personId, sealed).toString()));
  }

  async write(personId: string, person: Person): Promise<void> {
    const known = await this.key(personId);
    const key = known ?? randomBytes(KEY_BYTES);
    const before = known && (await this.read(personId));
    if (!known) await replace(join(this.keys, personId), key);
    await replace(this.file(personId), seal(key, personId, Buffer.from(JSON.stringify(person))));
    for (const identity of person.identities) await replace(await this.entry(identity), Buffer.from(personId));
    for (const { issuer, subject } of before?.identities ?? []) {
      const stays = person.identities.some((each) => each.issuer === issuer && each.subject === subject);
      if (!stays) await rm(await this.entry({ issuer, subject }), { force: true });
    }
  }

  async find(identity: Identity): Promise<string | undefined> {
    return (await contentOf(await this.entry(identity)))?.toString();
  }

  async erase(personId: string): Promise<void> {
    // A record that cannot be read any more is no reason to keep its key.
    const person = await this.read(personId).catch((error: unknown) => {
      if (isAgonError(error, 'VAULT.UNREADABLE')) return undefined;
      throw error;
    });
    const key = join(this.keys, personId);
    if (await this.key(personId)) await overwrite(key, randomBytes(KEY_BYTES));
    await rm(key, { force: true });
    await rm(this.file(personId), { force: true });
    for (const identity of person?.identities ?? []) await rm(await this.entry(identity), { force: true });
  }

  private file(personId: string): string {
    if (PERSON_ID.test(personId)) return join(this.people, personId);
    throw new AgonError('VAULT.UNKNOWN', 'This is not the id of a person.');
  }

  private async key(personId: string): Promise<Buffer | undefined> {
    this.file(personId);
    const key = await contentOf(join(this.keys, personId));
    return key?.length === KEY_BYTES ? key : undefined;
  }

  /** Found by a keyed hash: the names of the files tell nobody who is vouched for by whom. */
  private async entry({ issuer, subject }: Identity): Promise<string> {
    const path = join(this.keys, 'index');
    const key = (await contentOf(path)) ?? (await first(path, randomBytes(KEY_BYTES)));
    const name = createHmac('sha256', key)
      .update(JSON.stringify([issuer, subject]))
      .digest('hex');
    return join(this.index, name);
  }
}

function seal(key: Buffer, personId: string, plain: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(personId));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

function unseal(key: Buffer, personId: string, content: Buffer): Buffer {
  try {
    const tag = content.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
    const cipher = createDecipheriv(ALGORITHM, key, content.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(personId)).setAuthTag(tag);
    return Buffer.concat([cipher.update(content.subarray(NONCE_BYTES + TAG_BYTES)), cipher.final()]);
  } catch (error) {
    const why = 'was changed, or its key is not the one it was sealed with';
    throw new AgonError('VAULT.UNREADABLE', `The record of person ${personId} ${why}.`, {}, { cause: error });
  }
}

const contentOf = (path: string): Promise<Buffer | undefined> =>
  readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });

/** The old content or the new, whatever happens in between. */
async function replace(path: string, content: Buffer): Promise<void> {
  const aside = `${path}.${randomBytes(6).toString('hex')}.new`;
  await overwrite(aside, content);
  await rename(aside, path);
}

/** The content of whoever was first, which need not be this one: another gateway may be at it, too. */
async function first(path: string, content: Buffer): Promise<Buffer> {
  const aside = `${path}.${randomBytes(6).toString('hex')}.new`;
  await overwrite(aside, content);
  try {
    await link(aside, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(aside, { force: true });
  }
  return readFile(path);
}

async function overwrite(path: string, content: Buffer): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}
