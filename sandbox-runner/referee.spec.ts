import { describe, expect, it } from 'vitest';
import type { AgentInstance, Completion, Fault, Reply } from './drivers/driver.js';
import { fault } from './drivers/driver.js';
import { gameNamed } from './games/index.js';
import { type Limits, limitsFrom } from './limits.js';
import { forfeit, type MatchRecord, playMatch } from './referee.js';
import { replay } from './replay.js';

type Step = unknown | { readonly fault: Fault } | { readonly value: unknown; readonly fuel: number };

/** An agent without a sandbox: says its lines, and remembers what it was told. */
class Scripted implements AgentInstance {
  readonly heard: unknown[] = [];
  readonly budgets: number[] = [];
  readonly driver = 'scripted';
  readonly driverVersion = '1';
  readonly meter = 'fuel';
  readonly usage = { fuel: 7, peakMemoryBytes: 1024 };
  private readonly start: Fault | undefined;
  private readonly steps: Step[];

  constructor(steps: Step[], start?: Fault) {
    this.steps = [...steps];
    this.start = start;
  }

  async init(config: unknown): Promise<Completion | Fault> {
    this.heard.push(config);
    return this.start ?? { kind: 'done', fuel: 0 };
  }

  async act(observation: unknown, fuel: number): Promise<Reply | Fault> {
    this.heard.push(observation);
    this.budgets.push(fuel);
    const step = this.steps.shift();
    if (step !== null && typeof step === 'object') {
      if ('fault' in step) return step.fault as Fault;
      if ('fuel' in step) return { kind: 'reply', ...(step as { value: unknown; fuel: number }) };
    }
    return { kind: 'reply', value: step, fuel: 1 };
  }

  async onResult(result: unknown): Promise<Completion | Fault> {
    this.heard.push(result);
    return fault('crash', 'nobody minds', 0);
  }

  log = () => '';
  dispose = () => {};
}

function match(seats: Scripted[], overrides: Partial<Limits> = {}, game = 'tic-tac-toe') {
  const limits = limitsFrom(overrides);
  return playMatch({
    game: gameNamed(game),
    seed: 'seed',
    seats,
    limits,
    driver: 'scripted',
    agents: seats.map((_, seat) => `${seat}`),
  });
}

const play = (first: Step[], second: Step[], overrides: Partial<Limits> = {}) =>
  match([new Scripted(first), new Scripted(second)], overrides);

const crash = { fault: fault('crash', 'Error: no', 1) };

describe('the referee', () => {
  const table: [name: string, first: Step[], second: Step[], outcome: object][] = [
    ['a win of the first seat', [0, 1, 2], [3, 4], { winner: 0, scores: [1, 0], reason: 'line', seatAtFault: null }],
    [
      'a win of the second seat',
      [0, 1, 8],
      [3, 4, 5],
      { winner: 1, scores: [0, 1], reason: 'line', seatAtFault: null },
    ],
    ['a draw', [0, 2, 3, 7, 8], [1, 4, 5, 6], { winner: null, scores: [0.5, 0.5], reason: 'full_board' }],
    ['a taken cell', [0, 1], [0], { winner: 0, scores: [1, 0], reason: 'illegal_move', seatAtFault: 1 }],
    ['a cell off the board', [9], [], { winner: 1, reason: 'bad_reply', seatAtFault: 0 }],
    [
      'a string',
      ['0'],
      [],
      { winner: 1, reason: 'bad_reply', seatAtFault: 0, detail: '"0" is no action of tic-tac-toe' },
    ],
    ['an object', [0], [{ move: 1 }], { winner: 0, reason: 'bad_reply', seatAtFault: 1 }],
    ['a crash', [0], [crash], { winner: 0, scores: [1, 0], reason: 'crash', seatAtFault: 1, detail: 'Error: no' }],
    ['a crash on the first turn', [crash], [], { winner: 1, scores: [0, 1], reason: 'crash', seatAtFault: 0 }],
  ];

  it.each(table)('judges %s, and a replay agrees', async (_name, first, second, outcome) => {
    const record = await play(first, second);
    expect(record.outcome).toMatchObject(outcome);
    expect(record.outcome.scores[0]! + record.outcome.scores[1]!).toBe(1);
    expect(JSON.parse(JSON.stringify(record))).toEqual(record);
    expect(replay(record)).toMatchObject({ agrees: true, problem: '' });
  });

  it('lets a seat lose that cannot start, whichever it is', async () => {
    for (const seat of [0, 1]) {
      const seats = [0, 1].map((each) => new Scripted([], each === seat ? fault('no_act', 'no act', 0) : undefined));
      const record = await match(seats);
      expect(record.outcome).toMatchObject({ winner: 1 - seat, reason: 'no_act', seatAtFault: seat });
      expect(record.turns).toEqual([]);
      expect(replay(record).agrees).toBe(true);
    }
  });

  it('calls it even when neither seat can start', async () => {
    const record = await match([0, 1].map(() => new Scripted([], fault('syntax_error', 'line 1', 0))));
    expect(record.outcome).toMatchObject({
      winner: null,
      scores: [0.5, 0.5],
      reason: 'syntax_error',
      seatAtFault: null,
    });
    expect(replay(record).agrees).toBe(true);
  });

  it('tells agents their seat and the result, and never the seed', async () => {
    const seats = [new Scripted([0, 1, 2]), new Scripted([3, 4])];
    await match(seats);
    expect(seats[1]!.heard.at(0)).toMatchObject({ game: 'tic-tac-toe', seat: 1, seats: 2 });
    expect(seats[1]!.heard.at(1)).toMatchObject({ turn: 2, seat: 1, mark: 'O', legal: [1, 2, 3, 4, 5, 6, 7, 8] });
    expect(seats[1]!.heard.at(-1)).toEqual({ game: 'tic-tac-toe', seat: 1, winner: 0, score: 0, reason: 'line' });
    expect(JSON.stringify(seats.map((seat) => seat.heard))).not.toContain('seed');
  });

  it('pays for long turns from the bank, and offers no more than is left', async () => {
    const limits = { turnFuel: 10, bankFuel: 25 };
    const first = new Scripted([
      { value: 0, fuel: 5 },
      { value: 1, fuel: 30 },
      { value: 2, fuel: 12 },
    ]);
    const record = await match([first, new Scripted([3, 4])], limits);
    expect(first.budgets).toEqual([35, 35, 15]);
    expect(record.turns.map((turn) => turn.fuel)).toEqual([5, 1, 30, 1, 12]);
    expect(replay(record).agrees).toBe(true);
  });

  it('announces each seat before its code runs', async () => {
    const seen: unknown[] = [];
    await playMatch({
      game: gameNamed('tic-tac-toe'),
      seed: 's',
      seats: [new Scripted([0, 1, 2]), new Scripted([3, 4])],
      limits: limitsFrom(),
      driver: 'scripted',
      agents: ['a', 'b'],
      onTurn: (turn, seat, last) => seen.push([turn, seat, last?.action]),
    });
    expect(seen.slice(0, 4)).toEqual([
      [0, 0, undefined],
      [0, 1, undefined],
      [1, 0, undefined],
      [2, 1, 0],
    ]);
    expect(seen.slice(-2)).toEqual([
      [5, 0, 2],
      [5, 1, 2],
    ]);
  });

  describe('with more than two seats', () => {
    const three = (...lines: Step[][]) =>
      match(
        lines.map((line) => new Scripted(line)),
        {},
        'prisoners',
      );
    const rounds = (...choices: string[]) => Array<Step>(40).fill(choices);

    it('plays everybody at once, seat by seat, and scores by what each has earned', async () => {
      const record = await three(rounds('C', 'C'), rounds('C', 'D'), rounds('C', 'D'));
      const played = record.turns.length / 3;
      expect(record.turns[1]).toMatchObject({ turn: 2, seat: 1, action: ['C', 'D'] });
      // Seat 0 is trusted by both; the others betray each other.
      const total = 6 + 4 + 4;
      expect(record.outcome).toMatchObject({ winner: 0, reason: 'payoffs', scores: [6 / total, 4 / total, 4 / total] });
      expect(played >= 20 && played <= 40).toBe(true);
      expect(JSON.parse(JSON.stringify(record))).toEqual(record);
      expect(replay(record)).toMatchObject({ agrees: true, problem: '' });
    });

    it('gives nothing to the seat that breaks a rule, and shares the point among the others', async () => {
      const faults: [Step, string, string][] = [
        [['C'], 'illegal_move', '["C"] is not one of ["C","C"] ["C","D"] ["D","C"] ["D","D"]'],
        ['C', 'bad_reply', '"C" is no action of prisoners'],
        [crash, 'crash', 'Error: no'],
      ];
      for (const [step, reason, detail] of faults) {
        const record = await three(rounds('C', 'C'), [step], rounds('C', 'C'));
        expect(record.outcome).toEqual({ winner: null, scores: [0.5, 0, 0.5], reason, detail, seatAtFault: 1 });
        expect(replay(record)).toMatchObject({ agrees: true, problem: '' });
        const outcome = { ...record.outcome, scores: [0, 0.5, 0.5], seatAtFault: 0 };
        expect(replay({ ...record, outcome }).agrees).toBe(false);
      }
    });

    it('tells nobody what another seat has chosen before the round is complete', async () => {
      const seats = [rounds('D', 'D'), rounds('C', 'C'), rounds('C', 'C')].map((line) => new Scripted(line));
      await match(seats, {}, 'prisoners');
      const first = seats.map((seat) => seat.heard[1]);
      expect(first.map((heard) => (heard as { board: unknown }).board)).toEqual([[], [], []]);
      expect(seats[2]!.heard[2]).toMatchObject({ round: 2, board: [{ mine: ['C', 'C'], theirs: ['D', 'C'] }] });
    });

    it('does not accept shares that the moves did not earn', async () => {
      const record = await three(rounds('C', 'C'), rounds('C', 'D'), rounds('C', 'D'));
      const forged = { ...record.outcome, winner: null, scores: [1 / 3, 1 / 3, 1 / 3] };
      expect(replay({ ...record, outcome: forged })).toMatchObject({ agrees: false });
      const changed = record.turns.with(2, { ...record.turns[2]!, action: ['C'] });
      expect(replay({ ...record, turns: changed })).toMatchObject({
        agrees: false,
        problem: expect.stringMatching(/illegal/),
      });
    });
  });

  it('plays games of chance by the seed alone, and a replay deals the same cards', async () => {
    const calling = () => new Scripted(Array<Step>(400).fill('check'));
    const record = await match([calling(), calling()], {}, 'leduc-holdem');
    expect(record.turns.length).toBe(160);
    expect(record.outcome.reason).toBe('chips');
    expect(replay(record).agrees).toBe(true);
    expect(replay({ ...record, seed: 'another' }).agrees).toBe(false);
  });

  it('refuses the wrong number of agents', async () => {
    await expect(match([new Scripted([])])).rejects.toMatchObject({ code: 'SANDBOX.WRONG_SEATS' });
  });
});

describe('replay', () => {
  const change = (record: MatchRecord, changes: Partial<MatchRecord>): MatchRecord => ({ ...record, ...changes });

  it('lists the positions for drawing', async () => {
    const { states } = replay(await play([0, 1, 2], [3, 4]));
    expect(states.length).toBe(6);
    expect(gameNamed('tic-tac-toe').render(states.at(-1))).toContain(' X | X | X');
  });

  it('finds a forged winner, a forged move, a skipped turn and a forged fault', async () => {
    const record = await play([0, 1, 2], [3, 4]);
    const { outcome, turns } = record;
    const forged = [
      change(record, { outcome: { ...outcome, winner: 1, scores: [0, 1] } }),
      change(record, { outcome: { ...outcome, scores: [1, 1] } }),
      change(record, { outcome: { ...outcome, reason: 'crash', winner: 1, scores: [0, 1], seatAtFault: 0 } }),
      change(record, { turns: turns.slice(0, -1) }),
      change(record, { turns: turns.toSpliced(1, 1) }),
      change(record, { turns: turns.with(4, { ...turns[4]!, action: 8 }) }),
      change(record, { turns: turns.with(4, { ...turns[4]!, seat: 1 }) }),
      change(record, { turns: turns.with(0, { ...turns[0]!, fuel: 1e9 }) }),
      change(record, { turns: [...turns, { turn: 6, seat: 1, action: 8, fuel: 0 }] }),
    ];
    for (const each of forged)
      expect(replay(each)).toMatchObject({ agrees: false, problem: expect.stringMatching(/./) });
  });

  it('finds a fault laid on the wrong seat', async () => {
    const record = await play([0], [crash]);
    const outcome = { ...record.outcome, winner: 1, scores: [0, 1], seatAtFault: 0 };
    expect(replay(change(record, { outcome })).agrees).toBe(false);
  });

  it('does not replay under other rules', async () => {
    const record = await play([0], [crash]);
    expect(() => replay(change(record, { gameVersion: 99 }))).toThrow(/version/);
  });

  it('accepts a forfeit', async () => {
    const { turns } = await play([0], [crash]);
    const record = forfeit({
      game: gameNamed('tic-tac-toe'),
      seed: 's',
      driver: 'wasm',
      agents: ['a', 'b'],
      turns,
      limits: limitsFrom(),
      seat: 1,
      reason: 'timeout',
      detail: 'too slow',
    });
    expect(record.outcome).toMatchObject({ winner: 0, reason: 'timeout', seatAtFault: 1 });
    expect(record.usage).toEqual([
      { fuel: 1, peakMemoryBytes: 0 },
      { fuel: 0, peakMemoryBytes: 0 },
    ]);
    expect(replay(record).agrees).toBe(true);
  });
});
