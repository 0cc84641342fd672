import { createHash } from 'node:crypto';

/** A source of chance for the setup of a game. It is used up as it goes, so it never becomes part of a state. */
interface Chance {
  /** Evenly from 0 up to, and not including, `bound`. */
  below(bound: number): number;
  shuffled<T>(items: readonly T[]): T[];
}

const wordsInBlock = 8;

/**
 * Chance that follows from the seed alone: SHA-256 of the game, the seed and a counter. An agent's own random numbers
 * come from the same seed by another name, so they tell nothing about the cards.
 */
export function chance(game: string, seed: string): Chance {
  let block = Buffer.alloc(0);
  let drawn = 0;
  const word = (): number => {
    const at = drawn % wordsInBlock;
    if (at === 0) block = createHash('sha256').update(`chance\n${game}\n${seed}\n${drawn}`).digest();
    drawn += 1;
    return block.readUInt32BE(at * 4);
  };
  const below = (bound: number): number => {
    // The last, incomplete run of the range is thrown away: it would make small numbers likelier.
    const limit = 2 ** 32 - (2 ** 32 % bound);
    for (;;) {
      const value = word();
      if (value < limit) return value % bound;
    }
  };
  const shuffled = <T>(items: readonly T[]): T[] => {
    const left = [...items];
    return items.flatMap(() => left.splice(below(left.length), 1));
  };
  return { below, shuffled };
}
