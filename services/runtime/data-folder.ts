import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { kill, pid as ownPid, platform } from 'node:process';
import { AgonError } from '../kernel/index.js';

const FORMAT = 1;

/** The name of the log in the folder itself. */
export const EMBEDDED = 'embedded';

/** Who has the folder, and where it can be reached. */
interface Holder {
  readonly pid: number;
  /** Tells a process from a later one with the same number. */
  readonly started: string;
  readonly url?: string;
}

/** The folder that holds all that the embedded deployment keeps. */
export const folderLayout = (dataDir: string) => ({
  log: join(dataDir, 'log'),
  bus: join(dataDir, 'bus.mdb'),
  artifacts: join(dataDir, 'artifacts'),
  postgres: join(dataDir, 'postgres'),
  analytics: join(dataDir, 'analytics'),
  analyticsAddress: join(dataDir, 'analytics.json'),
  lock: join(dataDir, 'lock.json'),
  format: join(dataDir, 'agon.json'),
  token: join(dataDir, 'operator.token'),
  runnerToken: join(dataDir, 'runner.token'),
  runnerKey: join(dataDir, 'runner.key'),
  readerToken: join(dataDir, 'reader.token'),
  eventstoreCert: join(dataDir, 'eventstore.crt'),
  eventstoreKey: join(dataDir, 'eventstore.key'),
  derived: join(dataDir, 'derived.json'),
  moved: join(dataDir, 'moved.json'),
  tableKey: join(dataDir, 'table.key'),
  people: join(dataDir, 'people'),
  peopleKeys: join(dataDir, 'people-keys'),
  signingKeys: join(dataDir, 'signing.json'),
  webhookKey: join(dataDir, 'webhook.key'),
});

/** Takes the folder for this process alone, making it if need be. */
export class DataFolder {
  readonly paths: ReturnType<typeof folderLayout>;
  private held = false;
  private readonly holder: Holder = { pid: ownPid, started: startOf(ownPid) };

  private constructor(dataDir: string) {
    this.paths = folderLayout(dataDir);
  }

  static take(dataDir: string): DataFolder {
    const folder = new DataFolder(dataDir);
    try {
      makeFolder(dataDir);
      folder.lock();
      folder.checkFormat();
    } catch (error) {
      folder.release();
      if (error instanceof AgonError) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new AgonError('DATA.UNUSABLE', `The data folder ${dataDir} cannot be used: ${why}.`);
    }
    return folder;
  }

  /** The folder of somebody who may be running, to look at; nothing of it is taken. */
  static beside(dataDir: string): DataFolder {
    return new DataFolder(dataDir);
  }

  /** Writes down where the arena answers, for `agon status` and the other commands. */
  announce(url: string): void {
    writeAside(this.paths.lock, JSON.stringify({ ...this.holder, url }), 0o644);
  }

  /** The token with which commands of this machine act as operator: whoever can read the folder runs the arena. */
  operatorToken(): string {
    return secretIn(this.paths.token);
  }

  /** The token with which a runner's key may register here. */
  runnerToken(): string {
    return secretIn(this.paths.runnerToken);
  }

  /** What the secrets of webhooks are made from. */
  webhookKey(): string {
    return secretIn(this.paths.webhookKey);
  }

  /** The token with which EventStoreDB's clients may read the log. */
  readerToken(): string {
    return secretIn(this.paths.readerToken);
  }

  /**
   * What follows from a log holds its positions, and another log has others: what was made from another one is removed,
   * and made anew.
   */
  derivesFrom(store: string): void {
    const { derived, bus, postgres, analytics } = this.paths;
    const before = existsSync(derived)
      ? (JSON.parse(readFileSync(derived, 'utf8')) as { store: string }).store
      : EMBEDDED;
    if (before !== store) {
      for (const path of [bus, `${bus}-lock`, postgres, analytics]) rmSync(path, { recursive: true, force: true });
    }
    if (before !== store || store !== EMBEDDED) writeAside(derived, JSON.stringify({ store }), 0o644);
  }

  /** Notes that the log goes on elsewhere: nobody shall write to this one any more. */
  hasMoved(note: { to: string; events: number; logHash: string }): void {
    writeAside(this.paths.moved, JSON.stringify(note), 0o644);
  }

  /** Gives the folder back; somebody else's lock stays. */
  release(): void {
    if (!this.held) return;
    this.held = false;
    const holder = readHolder(this.paths.lock);
    if (holder?.pid === ownPid && holder.started === this.holder.started) rmSync(this.paths.lock, { force: true });
  }

  private lock(): void {
    const mine = `${this.paths.lock}.${ownPid}`;
    writeFileSync(mine, JSON.stringify(this.holder));
    try {
      for (;;) {
        try {
          linkSync(mine, this.paths.lock);
          this.held = true;
          return;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        }
        this.takeOver();
      }
    } finally {
      rmSync(mine, { force: true });
    }
  }

  /** Removes the lock of a process that is gone. */
  private takeOver(): void {
    const holder = readHolder(this.paths.lock);
    if (holder && isAlive(holder)) {
      const where = holder.url ? ` at ${holder.url}` : '';
      throw new AgonError(
        'DATA.IN_USE',
        `Another Agon (process ${holder.pid}) runs on this data folder${where}. Stop it, or choose another with --data.`,
        { pid: holder.pid },
      );
    }
    const stale = `${this.paths.lock}.stale-${ownPid}`;
    try {
      renameSync(this.paths.lock, stale);
    } catch (error) {
      // Gone already: the next try finds out who was faster. Anything else would go on for ever.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      throw error;
    }
    // Between the look and the rename somebody else may have taken over: give that lock back.
    const taken = readHolder(stale);
    if (taken && isAlive(taken)) linkSync(stale, this.paths.lock);
    rmSync(stale, { force: true });
  }

  private checkFormat(): void {
    const { format } = this.paths;
    if (!existsSync(format)) writeAside(format, JSON.stringify({ format: FORMAT }));
    const found = JSON.parse(readFileSync(format, 'utf8')) as { format?: number };
    if (found.format !== FORMAT) {
      throw new AgonError(
        'DATA.OTHER_FORMAT',
        `The data folder has format ${found.format}; this Agon reads ${FORMAT}.`,
      );
    }
  }
}

/** The process that has the folder, if it is alive. */
export function holderOf(dataDir: string): Holder | undefined {
  const holder = readHolder(folderLayout(dataDir).lock);
  return holder && isAlive(holder) ? holder : undefined;
}

/** Compares digests, which have one length whatever was sent, and takes the same time for every wrong token. */
export const sameToken = (a: string, b: string): boolean =>
  timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'));

function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder;
  } catch (error) {
    // A lock that cannot be read is somebody else's; one that is not there or half written is nobody's.
    if ((error as NodeJS.ErrnoException).code === 'EACCES') throw error;
    return undefined;
  }
}

/** Whether the very process still runs: its number alone may be another's by now. */
export function isAlive({ pid, started }: Pick<Holder, 'pid' | 'started'>): boolean {
  try {
    kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  return startOf(pid) === started;
}

/** When a process started, in the kernel's own ticks; empty where the system does not say. */
export function startOf(pid: number): string {
  if (platform !== 'linux') return '';
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return 'gone';
  }
}

/** Level by level: Node's own way of making parents does not come back from a place like /proc. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path);
}

function secretIn(path: string): string {
  if (!existsSync(path)) makeSecret(path);
  chmodSync(path, 0o600);
  return readFileSync(path, 'utf8').trim();
}

/** Of several processes that find none, all use the secret of whoever was first. */
function makeSecret(path: string): void {
  const aside = `${path}.${ownPid}.new`;
  writeFileSync(aside, randomBytes(24).toString('base64url'), { mode: 0o600 });
  try {
    linkSync(aside, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

function writeAside(path: string, text: string, mode = 0o600): void {
  writeFileSync(`${path}.new`, text, { mode });
  renameSync(`${path}.new`, path);
}
