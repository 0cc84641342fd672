import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../e2e/agon.contract.js';
import { connectionOf } from './play.js';

const folder = temporaryFolder();
afterAll(folder.remove);

/** A file with its own name in it. */
const file = (name: string) => {
  const path = join(folder.path, name);
  writeFileSync(path, name);
  return path;
};
const where = { arena: 'arena.test:4602', key: 'key' };
const tlsOf = (files: { ca?: string; cert?: string; certKey?: string }) =>
  connectionOf(folder.path, { ...where, ...files }).tls;

describe('the way from the command line to an arena', () => {
  it('is in clear, unless a file says otherwise', () => {
    expect(connectionOf(folder.path, where)).toEqual({ ...where, tls: undefined });
  });

  it.each([
    ['an authority', { ca: file('ca') }, { ca: Buffer.from('ca') }],
    [
      'a certificate of its own',
      { cert: file('cert'), certKey: file('key') },
      { cert: Buffer.from('cert'), key: Buffer.from('key') },
    ],
  ])('speaks TLS with %s', (_what, files, tls) => {
    expect(tlsOf(files)).toEqual(tls);
  });

  it.each([
    ['a certificate without its key', { cert: file('cert') }, 'CONFIG.INVALID'],
    ['a key without its certificate', { ca: file('ca'), certKey: file('key') }, 'CONFIG.INVALID'],
    ['a file that is not there', { ca: join(folder.path, 'nowhere') }, 'FILE.UNREADABLE'],
  ])('is refused with %s', (_what, files, code) => {
    expect(() => tlsOf(files)).toThrow(expect.objectContaining({ code }));
  });
});
