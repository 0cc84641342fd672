import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { probe } from '../../services/adapters/store/probe.js';
import { AgonError, type EventStore } from '../../services/kernel/index.js';
import { DataFolder, folderLayout } from '../../services/runtime/data-folder.js';
import { type MigrateOptions, type Migration, migrate } from './migrate.js';

/** What an arena keeps besides its log and what follows from it: agents' code, people, and keys. No log brings them back. */
const BESIDE = [
  'artifacts',
  'people',
  'peopleKeys',
  'signingKeys',
  'webhookKey',
  'tableKey',
  'token',
  'runnerToken',
] as const;

export interface Move {
  /** The data folder of an arena that does not run. */
  readonly from: string;
  /** The log that it goes on with, and what that is called. */
  readonly target: { readonly name: string; open(): Promise<EventStore> };
  /** The folder that the processes of a cluster share; the old one goes on being used when left out. */
  readonly into?: string | undefined;
}

export interface ArenaMigration extends Migration {
  /** Files that were copied, or were there from an earlier try. */
  readonly files: number;
}

/**
 * Moves an arena: its log by `migrate`, and what lies beside it. Nothing is removed from the old folder, but nobody can
 * write to its log any more. Repeated after an interruption, it goes on.
 */
export async function moveArena({ from, target, into }: Move, options: MigrateOptions = {}): Promise<ArenaMigration> {
  if (!existsSync(join(folderLayout(from).log, 'events.mdb'))) {
    throw new AgonError('DATA.EMPTY', `There is no log in ${from} to move. Name its folder with --data.`);
  }
  const folder = DataFolder.take(from);
  try {
    // A file that a reader cannot survive is found by another process.
    await probe(folder.paths.log);
    const source = await LmdbEventStore.open(folder.paths.log, { readOnly: true });
    try {
      const store = await target.open();
      try {
        const files = into === undefined || resolve(into) === resolve(from) ? 0 : copyBeside(from, into);
        const migration = await migrate(source, store, options);
        folder.hasMoved({ to: target.name, events: migration.events, logHash: migration.logHash });
        return { ...migration, files };
      } finally {
        await store.close();
      }
    } finally {
      await source.close();
    }
  } finally {
    folder.release();
  }
}

/** Where the log of a folder has gone, if it has. */
export function movedTo(dataDir: string): string | undefined {
  const { moved } = folderLayout(dataDir);
  return existsSync(moved) ? (JSON.parse(readFileSync(moved, 'utf8')) as { to: string }).to : undefined;
}

/** All or nothing of it is in the way: a folder with other keys belongs to a cluster that has begun its own life. */
function copyBeside(from: string, into: string): number {
  const [ours, theirs] = [folderLayout(from), folderLayout(into)];
  const pairs = BESIDE.flatMap((name) =>
    filesIn(ours[name]).map((path) => [path, join(theirs[name], relative(ours[name], path))] as const),
  );
  const other = pairs.find(([path, copy]) => existsSync(copy) && !readFileSync(path).equals(readFileSync(copy)));
  if (other) {
    throw new AgonError(
      'MIGRATE.FOLDER',
      `${other[1]} is there and differs from ${other[0]}. Nothing was copied: move into the folder of a cluster that has not run yet.`,
    );
  }
  for (const [path, copy] of pairs) {
    mkdirSync(dirname(copy), { recursive: true });
    cpSync(path, copy);
  }
  return pairs.length;
}

/** The file itself, or all below a folder; nothing where there is none. */
function filesIn(path: string): string[] {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesIn(join(path, name)));
}
