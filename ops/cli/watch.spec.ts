import { stdout } from 'node:process';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { screenOf } from './watch.js';

const match = {
  matchId: 'm',
  game: 'tic-tac-toe',
  seats: [{ agentId: 'ada.bot' }, { agentId: 'bob.bot' }],
};
const turn = (id: string, seat: number, action: unknown) => {
  return { id, event: 'turn', data: { turn: Number(id.split('.')[1]), seat, action } };
};

/** What a terminal is sent. */
function onTerminal(): string[] {
  const sent: string[] = [];
  vi.spyOn(stdout, 'write').mockImplementation((text) => sent.push(String(text)) > 0);
  stdout.isTTY = true;
  return sent;
}

const { isTTY } = stdout;
afterEach(() => {
  vi.restoreAllMocks();
  stdout.isTTY = isTTY;
});

describe('watching on a terminal', () => {
  it('draws the board in its place after every turn, anew for a new attempt, and then the end', () => {
    const sent = onTerminal();
    const screen = screenOf(match, {});
    expect(screen.show(turn('1.1', 0, 4))).toBe(false);
    expect(sent.at(-1)?.startsWith('\u001b[H\u001b[J')).toBe(true);
    expect(sent.at(-1)).toMatch(/X[\s\S]*turn 1 {2}ada\.bot plays 4/);
    screen.show(turn('1.2', 1, 0));
    expect(sent.at(-1)).toMatch(/O[\s\S]*X/);
    screen.show(turn('2.1', 0, 8));
    expect(sent.at(-1)).not.toMatch(/\n[^\n]*O[^\n]*\n/);
    expect(screen.show({ id: '', event: 'end', data: { status: 'settled', reason: 'line', winner: 0 } })).toBe(true);
    expect(sent.at(-1)).toMatch(/settled: .*ada\.bot.* won \(line\)/);
  });

  it('says what was played where it cannot be drawn', () => {
    const sent = onTerminal();
    screenOf(match, {}).show(turn('1.1', 0, 'nonsense'));
    expect(sent.at(-1)).toBe('turn 1  ada.bot plays "nonsense"\n');
  });
});
