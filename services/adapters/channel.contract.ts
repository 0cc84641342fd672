import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Channel } from '../runtime/engines.js';

/** What everybody who speaks over a channel relies on. `two` gives the ends of two processes, or of one and the same. */
export function channelContract(name: string, two: () => Promise<readonly [Channel, Channel]>): void {
  describe(name, () => {
    it('tells those who listen, and nobody else', async () => {
      const [one, other] = await two();
      const heard: unknown[] = [];
      await other.subscribe('turns', (message) => heard.push(message));
      one.publish('turns', { turn: 1 });
      one.publish('others', { turn: 2 });
      one.publish('turns', { turn: 3 });
      await until(() => heard.length === 2);
      expect(heard).toEqual([{ turn: 1 }, { turn: 3 }]);
    });

    it('lets what is offered be looked up, as it is now', async () => {
      const [one, other] = await two();
      let value = ['ada'];
      const withdraw = one.offer('who waits', () => value);
      await until(async () => (await other.lookUp('who waits')) !== undefined);
      expect(await other.lookUp('who waits')).toEqual(['ada']);
      value = ['ada', 'bob'];
      await until(async () => ((await other.lookUp('who waits')) as string[]).length === 2);
      expect(await other.lookUp('who waits')).toEqual(['ada', 'bob']);
      expect(await other.lookUp('who plays')).toBeUndefined();
      withdraw();
      await until(async () => (await other.lookUp('who waits')) === undefined);
      expect(await other.lookUp('who waits')).toBeUndefined();
    });
  });
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(5);
}
