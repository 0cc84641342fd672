import { describe, expect, it } from 'vitest';
import { heldBack } from './held-back.js';
import type { Checkpoints } from './ports.js';

/** What a group has saved, and nothing else of checkpoints. */
function saving(at = 0) {
  const saved = new Map([['group', at]]);
  const checkpoints = {
    load: async (group: string) => saved.get(group) ?? 0,
    save: async (group: string, position: number) => void saved.set(group, position),
    reset: async (group: string) => void saved.delete(group),
  } as Checkpoints;
  return { checkpoints, last: () => saved.get('group') ?? 0 };
}

describe('checkpoints that are held back', () => {
  it('save where a batch ended, and never a position in between', async () => {
    const { checkpoints, last } = saving(733);
    let open: number | undefined = 1_193;
    const held = heldBack(checkpoints, () => open);
    await held.load('group');
    const saves: number[] = [];
    for (const heard of [848, 1_078, 1_308, 1_538]) {
      await held.save('group', heard);
      saves.push(last());
    }
    expect(saves).toEqual([848, 1_078, 1_078, 1_078]);
    open = 1_423;
    expect(held.complete()).toBe(1_308);
    open = undefined;
    expect(held.complete()).toBe(1_538);
  });

  it('stay where the group began while its first event is open', async () => {
    const { checkpoints, last } = saving(733);
    const held = heldBack(checkpoints, () => 848);
    await held.load('group');
    for (const heard of [963, 1_078]) await held.save('group', heard);
    expect(last()).toBe(733);
    await held.reset('group');
    expect(held.complete()).toBe(0);
  });

  it('remember less of what lies far back, and never go beyond what is open', async () => {
    const { checkpoints } = saving();
    let open: number | undefined = 1;
    const held = heldBack(checkpoints, () => open);
    await held.load('group');
    for (let heard = 10; heard <= 100_000; heard += 10) await held.save('group', heard);
    for (open = 5_001; open < 100_000; open += 5_000) {
      const complete = held.complete();
      expect(complete % 10).toBe(0);
      expect(complete).toBeLessThan(open);
      expect(complete).toBeGreaterThan(open - 5_000);
    }
    open = undefined;
    expect(held.complete()).toBe(100_000);
  });
});
