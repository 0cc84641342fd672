import { hash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AgonError, type Artifacts } from '../kernel/index.js';

const DIGEST = /^[0-9a-f]{64}$/;

/** Artifacts as files named by their SHA-256, in folders of their first two digits. */
export class FileArtifacts implements Artifacts {
  constructor(private readonly folder: string) {}

  async put(content: Uint8Array): Promise<string> {
    const digest = hash('sha256', content);
    const path = this.path(digest);
    if (await isWhole(path, digest)) return digest;
    await mkdir(dirname(path), { recursive: true });
    // A crash must leave the whole file or none under its name: write aside, sync, rename.
    const aside = `${path}.${randomUUID()}`;
    const file = await open(aside, 'wx', 0o644);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(aside, path);
    await syncFolder(dirname(path));
    return digest;
  }

  async get(digest: string): Promise<Uint8Array> {
    const content = await readFile(this.path(digest)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') throw new AgonError('ARTIFACT.MISSING', `There is no artifact ${digest}.`);
      throw error;
    });
    if (hash('sha256', content) !== digest) {
      throw new AgonError('ARTIFACT.CORRUPT', `The artifact ${digest} was changed: its content has another digest.`);
    }
    return content;
  }

  private path(digest: string): string {
    if (!DIGEST.test(digest)) throw new AgonError('ARTIFACT.BAD_DIGEST', `"${digest}" is not a SHA-256 in hex.`);
    return join(this.folder, digest.slice(0, 2), digest);
  }
}

/** A file that is there but damaged is written again: the content in hand is the right one. */
const isWhole = (path: string, digest: string) =>
  readFile(path).then(
    (content) => hash('sha256', content) === digest,
    () => false,
  );

/** A rename is only durable once its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
