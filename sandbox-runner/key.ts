import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { AgonError, newSigningKey, type SigningKey, signingKeyFrom } from '../services/kernel/index.js';

/** The runner's key in this file, made on first use. Only its owner may read it. */
export function keyIn(path: string): SigningKey {
  try {
    if (existsSync(path)) {
      chmodSync(path, 0o600);
      return signingKeyFrom(readFileSync(path, 'utf8'));
    }
    const key = newSigningKey();
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(`${path}.new`, key.pem, { mode: 0o600 });
    renameSync(`${path}.new`, path);
    return key;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AgonError('RUNNERS.BAD_KEY', `The runner's key ${path} cannot be used: ${why}.`);
  }
}
