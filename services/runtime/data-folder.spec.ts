import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DataFolder, folderLayout, holderOf, sameToken } from './data-folder.js';

describe('the data folder', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agon-folder-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const lock = () => folderLayout(folder).lock;

  it('belongs to one process, which others can see', () => {
    const taken = DataFolder.take(folder);
    expect(holderOf(folder)).toMatchObject({ pid: process.pid });
    expect(() => DataFolder.take(folder)).toThrow(expect.objectContaining({ code: 'DATA.IN_USE' }));
    taken.announce('http://127.0.0.1:1');
    expect(holderOf(folder)).toMatchObject({ pid: process.pid, url: 'http://127.0.0.1:1' });
    taken.release();
    expect(holderOf(folder)).toBeUndefined();
    DataFolder.take(folder).release();
  });

  it('is free again when its process is gone, also when another process has got its number', () => {
    const { pid } = spawnSync('true');
    writeFileSync(lock(), JSON.stringify({ pid, started: '1' }));
    DataFolder.take(folder).release();
    writeFileSync(lock(), JSON.stringify({ pid: process.pid, started: 'long ago' }));
    DataFolder.take(folder).release();
  });

  it('is free again when its lock was only half written', () => {
    writeFileSync(lock(), '{"pid": 1');
    DataFolder.take(folder).release();
  });

  it('refuses a format that it does not know', () => {
    writeFileSync(folderLayout(folder).format, JSON.stringify({ format: 99 }));
    expect(() => DataFolder.take(folder)).toThrow(expect.objectContaining({ code: 'DATA.OTHER_FORMAT' }));
    expect(holderOf(folder)).toBeUndefined();
  });

  it('keeps one token, for its owner alone', () => {
    const taken = DataFolder.take(folder);
    const token = taken.operatorToken();
    expect(taken.operatorToken()).toBe(token);
    expect(readFileSync(folderLayout(folder).token, 'utf8')).toBe(token);
    expect(sameToken(token, token)).toBe(true);
    expect(sameToken(token, `${token.slice(0, -1)}!`)).toBe(false);
    expect(sameToken(token, '')).toBe(false);
    taken.release();
  });
});
