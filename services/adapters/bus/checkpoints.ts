import { dirname } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import type { Checkpoints, DeadLetter } from '../../kernel/index.js';
import { assertSpace, committed } from '../store/store-error.js';

/** Checkpoints in memory, for tests. */
export class MemoryCheckpoints implements Checkpoints {
  private readonly positions = new Map<string, number>();
  private readonly letters = new Map<string, DeadLetter>();

  async load(group: string): Promise<number> {
    return this.positions.get(group) ?? 0;
  }

  async save(group: string, position: number): Promise<void> {
    this.positions.set(group, position);
  }

  async reset(group: string): Promise<void> {
    this.positions.delete(group);
  }

  async bury(letter: DeadLetter): Promise<void> {
    this.letters.set(`${letter.group} ${letter.eventId}`, letter);
  }

  async deadLetters(group?: string): Promise<readonly DeadLetter[]> {
    return [...this.letters.values()].filter((letter) => group === undefined || letter.group === group);
  }
}

type Entry = number | DeadLetter;

/** Checkpoints in the data folder. A save need not be flushed: losing the newest only means a redelivery. */
export class LmdbCheckpoints implements Checkpoints {
  private readonly env: RootDatabase<Entry, string[]>;

  constructor(private readonly path: string) {
    // Batching by turn makes a second promise for each commit, which nobody could catch on a full disk.
    this.env = open<Entry, string[]>({
      path,
      noSubdir: true,
      encoding: 'json',
      cache: false,
      eventTurnBatching: false,
    });
  }

  async load(group: string): Promise<number> {
    return (this.env.get(['position', group]) as number | undefined) ?? 0;
  }

  async save(group: string, position: number): Promise<void> {
    assertSpace(dirname(this.path), 0);
    await committed(this.env.put(['position', group], position), dirname(this.path));
  }

  async reset(group: string): Promise<void> {
    await committed(this.env.remove(['position', group]), dirname(this.path));
  }

  async bury(letter: DeadLetter): Promise<void> {
    assertSpace(dirname(this.path), 0);
    await committed(this.env.put(['letter', letter.group, letter.eventId], letter), dirname(this.path));
    await committed(this.env.flushed, dirname(this.path));
  }

  async deadLetters(group?: string): Promise<readonly DeadLetter[]> {
    const start = group === undefined ? ['letter'] : ['letter', group];
    const range = this.env.getRange({ start, end: [...start, '\uffff'] });
    return [...range].map((entry) => entry.value as DeadLetter);
  }

  async close(): Promise<void> {
    await this.env.close();
  }
}
