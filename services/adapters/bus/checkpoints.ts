import { open, type RootDatabase } from 'lmdb';
import type { Checkpoints, DeadLetter } from '../../kernel/index.js';

/** Checkpoints in memory, for tests. */
export class MemoryCheckpoints implements Checkpoints {
  private readonly positions = new Map<string, number>();
  private readonly letters: DeadLetter[] = [];

  async load(group: string): Promise<number> {
    return this.positions.get(group) ?? 0;
  }

  async save(group: string, position: number): Promise<void> {
    this.positions.set(group, position);
  }

  async bury(letter: DeadLetter): Promise<void> {
    this.letters.push(letter);
  }

  async deadLetters(group?: string): Promise<readonly DeadLetter[]> {
    return this.letters.filter((letter) => group === undefined || letter.group === group);
  }
}

type Entry = number | DeadLetter;

/** Checkpoints in the data folder. A save need not be flushed: losing the newest only means a redelivery. */
export class LmdbCheckpoints implements Checkpoints {
  private readonly env: RootDatabase<Entry, string[]>;

  constructor(path: string) {
    this.env = open<Entry, string[]>({ path, noSubdir: true, encoding: 'json', cache: false });
  }

  async load(group: string): Promise<number> {
    return (this.env.get(['position', group]) as number | undefined) ?? 0;
  }

  async save(group: string, position: number): Promise<void> {
    await this.env.put(['position', group], position);
  }

  async bury(letter: DeadLetter): Promise<void> {
    await this.env.put(['letter', letter.group, letter.eventId], letter);
    await this.env.flushed;
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
