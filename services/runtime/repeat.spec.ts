import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { repeat } from './repeat.js';

function withResolvers() {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describe('what is done again and again', () => {
  it('is never done twice at a time', async () => {
    let underWay = 0;
    const seen: number[] = [];
    const enough = withResolvers();
    const repeating = repeat(
      1,
      async () => {
        seen.push(++underWay);
        if (seen.length === 3) enough.resolve();
        await sleep(5);
        underWay -= 1;
      },
      () => {},
    );
    await enough.promise;
    await repeating.stop();
    expect(underWay).toBe(0);
    expect(seen).toEqual([1, 1, 1]);
  });

  it('goes on after a failure, which is told', async () => {
    const told: unknown[] = [];
    const enough = withResolvers();
    let times = 0;
    const repeating = repeat(
      1,
      async () => {
        times += 1;
        if (times === 2) enough.resolve();
        throw new Error(`failure ${times}`);
      },
      (error) => told.push((error as Error).message),
    );
    await enough.promise;
    await repeating.stop();
    expect(told).toEqual(['failure 1', 'failure 2']);
  });
});
