import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ABORT, open, type RootDatabase } from 'lmdb';

const PAGE_BYTES = 4096;
const MAGIC = 0xbeefc0de;
const MAGIC_AT = 24;
/** After so many commits without a pause, those who wait outside get a moment to come in. */
const COMMITS_IN_A_ROW = 64;
const PAUSE_MS = 1;

export const gatePath = (folder: string): string => join(folder, 'gate.mdb');

/**
 * Keeps the openings of a log apart from the commits of its writer, in whatever processes they are. LMDB, as lmdb 3.5
 * has it, notes down the last transaction when it opens a file; a commit that falls between its reading and its noting
 * is forgotten, and overwritten by the next (ITS#9496 of LMDB, not taken over by lmdb). So both happen in here, one at
 * a time: the gate is a file of LMDB's that stays empty, and what is held is its write lock, which ends with its holder.
 */
export class Gate {
  private static readonly gates = new Map<string, Gate>();

  private users = 0;
  private commits = 0;
  private inARow = 0;
  private leave: () => void = () => {};
  private leaving: Promise<unknown> | undefined;

  private constructor(
    private readonly folder: string,
    private readonly env: RootDatabase | undefined,
  ) {}

  /** The gate of this folder. A process has one, however often it opens the log. */
  static of(folder: string): Gate {
    const gate = Gate.gates.get(folder) ?? new Gate(folder, openGate(folder));
    Gate.gates.set(folder, gate);
    gate.users += 1;
    return gate;
  }

  /** Opens a file of the folder while nobody commits. Its own process may: there, LMDB opens a file only once. */
  opening<T>(openFile: () => T): T {
    if (!this.env || this.commits > 0 || this.leaving) return openFile();
    let opened!: T;
    this.env.transactionSync(() => {
      opened = openFile();
      return ABORT;
    });
    return opened;
  }

  /** Commits while nobody opens a file. Several commits of one process, to the log and to its index, go in together. */
  async committing<T>(commit: () => PromiseLike<T>): Promise<T> {
    if (!this.env) return commit();
    if (this.inARow >= COMMITS_IN_A_ROW && this.commits === 0) {
      this.inARow = 0;
      await sleep(PAUSE_MS);
    }
    while (this.commits === 0 && this.leaving) await this.leaving;
    if (this.commits === 0) this.enter(this.env);
    this.commits += 1;
    this.inARow += 1;
    try {
      return await commit();
    } finally {
      this.commits -= 1;
      if (this.commits === 0) this.leave();
    }
  }

  async close(): Promise<void> {
    this.users -= 1;
    if (this.users > 0) return;
    Gate.gates.delete(this.folder);
    await this.leaving;
    await this.env?.close();
  }

  private enter(env: RootDatabase): void {
    let over!: () => void;
    const commits = new Promise<void>((resolve) => {
      over = resolve;
    });
    const left = env.transactionSync(() => commits.then(() => ABORT)) as unknown as Promise<unknown>;
    this.leave = () => {
      over();
      this.leaving = left.then(() => {
        this.leaving = undefined;
      });
    };
  }
}

/** A folder that may not be written to has no gate: who opens a file in it cannot note down anything either. */
function openGate(folder: string): RootDatabase | undefined {
  if (!existsSync(folder)) return undefined;
  const path = gatePath(folder);
  try {
    if (existsSync(path) && isDamaged(readFileSync(path))) {
      for (const file of [path, `${path}-lock`]) rmSync(file, { force: true });
    }
    return open({ path, noSubdir: true, pageSize: PAGE_BYTES, cache: false });
  } catch (error) {
    if (/EACCES|EROFS|EPERM|Permission denied|Read-only file system|not permitted/i.test(String(error)))
      return undefined;
    throw error;
  }
}

/** Both pages of an LMDB file that holds nothing are alike but for their number. LMDB itself may crash on others. */
function isDamaged(file: Buffer): boolean {
  if (file.length === 0) return false;
  const [first, second] = [file.subarray(1, PAGE_BYTES), file.subarray(PAGE_BYTES + 1)];
  return file.length !== 2 * PAGE_BYTES || !first.equals(second) || file.readUInt32LE(MAGIC_AT) !== MAGIC;
}
