import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { houseAgentSource } from './agents/index.js';
import { Cells } from './cells.js';
import { whyNoProcessSandboxes } from './drivers/process.js';
import type { Limits } from './limits.js';
import { root } from './paths.js';
import { CellPool, type PoolOptions } from './pool.js';
import { codeDigest, MarkerWriter, type MatchJob, readMarkers } from './protocol.js';
import { replay } from './replay.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-pool-spec-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const pools: CellPool[] = [];
const open = (options: PoolOptions = {}): CellPool => {
  const pool = new CellPool({ size: 1, ...options });
  pools.push(pool);
  return pool;
};
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close({ kill: true })));
});

const agent = (source: string) => ({ source, codeDigest: codeDigest(source) });
const first = agent('function act({ legal }) { return legal[0]; }');
/** Runs for longer than anyone will wait, in native code that takes no fuel. */
const hung = agent(
  'function act({ turn }) { return turn < 3 ? 8 - turn : [].indexOf.call({ length: 2 ** 53 - 1 }, 1); }',
);

const job = (agents: MatchJob['agents'], limits: Partial<Limits> = {}, seed = 'seed'): MatchJob => ({
  matchId: 'match-1',
  game: 'tic-tac-toe',
  seed,
  agents,
  limits,
});

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('waited too long');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const fakeCell = (name: string, program: string): string => {
  const file = join(folder, `${name}.mjs`);
  writeFileSync(file, `import { writeSync } from 'node:fs';\n${program}`);
  return file;
};

describe('a pool', () => {
  it('plays matches side by side, and each record stands a replay', async () => {
    const pool = open({ size: 2 });
    const random = agent(await houseAgentSource('random'));
    const seeds = Array.from({ length: 40 }, (_, index) => `seed-${index}`);
    const records = await Promise.all(
      seeds.map((seed) => pool.play({ ...job([random, random], {}, seed), game: 'connect-four' })),
    );
    expect(records.map((record) => record.seed)).toEqual(seeds);
    expect(new Set(records.map((record) => JSON.stringify(record.turns))).size).toBeGreaterThan(30);
    for (const record of records) expect(replay(record)).toMatchObject({ agrees: true });
    expect(records[0]).toMatchObject({ driver: 'wasm', agents: [random.codeDigest, random.codeDigest] });
  });

  it('gives byte-identical records in two fresh processes, and on a machine used before', async () => {
    const strong = agent(await houseAgentSource('tactician'));
    const play = (pool: CellPool) =>
      Promise.all(
        ['a', 'b', 'c'].map((seed) => pool.play({ ...job([strong, strong], {}, seed), game: 'connect-four' })),
      );
    const [one, two] = [open(), open()];
    const records = JSON.stringify(await play(one));
    expect(JSON.stringify(await play(two))).toBe(records);
    expect(JSON.stringify(await play(one))).toBe(records);
  });

  it('gives byte-identical records of faults too', async () => {
    const faulty = [
      'let depth = 0; const dive = () => { depth += 1; dive(); }; function act() { try { dive(); } catch {} throw depth; }',
      'function act() { let a = []; for (let i = 0; i < 1e5; i += 1) a = [a]; return a; }',
      'function act() { const m = new Map(); for (let i = 0; ; i += 1) m.set(i, [i]); }',
      'function act() { const a = []; for (;;) a.push({}); }',
      'function act() { return /(a+)+$/.test("a".repeat(40) + "b"); }',
    ].map(agent);
    const play = (pool: CellPool) => Promise.all(faulty.map((each) => pool.play(job([first, each]))));
    const [one, two] = [open(), open()];
    const records = await play(one);
    for (const record of records) expect(record.outcome).toMatchObject({ winner: 0, seatAtFault: 1 });
    expect(JSON.stringify(await play(two))).toBe(JSON.stringify(records));
    expect(JSON.stringify(await play(one))).toBe(JSON.stringify(records));
  });

  it('lets a seat lose by timeout when it hangs in native code, and plays on', async () => {
    const pool = open();
    const record = await pool.play(job([first, hung], { wallMs: 1_500 }));
    expect(record.outcome).toMatchObject({ winner: 0, reason: 'timeout', seatAtFault: 1 });
    expect(record.turns.map(({ turn, seat, action }) => [turn, seat, action])).toEqual([
      [1, 0, 0],
      [2, 1, 6],
      [3, 0, 1],
    ]);
    expect(replay(record).agrees).toBe(true);
    expect((await pool.play(job([first, first]))).outcome.reason).toBe('line');
  });

  it.each([
    ['its top level', '[].indexOf.call({ length: 2 ** 53 - 1 }, 1); function act() {}'],
    ['a string of ropes', 'let s = ""; for (let i = 0; i < 2e5; i += 1) s = "abcdefghij" + s + "x"; function act() {}'],
    ['a sort', 'const a = Array.from({ length: 3e5 }, (_, i) => "k" + i); for (;;) a.sort(); function act() {}'],
  ])('stops native code that takes no fuel: %s', async (_name, source) => {
    const record = await open().play(job([agent(source), first], { wallMs: 1_500, initFuel: 100_000 }));
    expect(record.outcome).toMatchObject({ winner: 1, reason: 'timeout', seatAtFault: 0 });
  });

  it('plays again after one death in a turn, and after a second one that seat has lost', async () => {
    const pool = open();
    // Turn 2 is told right before turn 3, in which the cell is caught.
    let told = 0;
    const playing = pool.play(job([hung, first]), () => {
      told += 1;
    });
    for (let death = 0; death < 2; death += 1) {
      await until(() => told === 2 * (death + 1));
      const [pid] = pool.pids;
      process.kill(pid!, 'SIGKILL');
      await until(() => !pool.pids.includes(pid!));
    }
    const record = await playing;
    expect(record.outcome).toMatchObject({ winner: 1, reason: 'crash', seatAtFault: 0 });
    expect(record.outcome.detail).toContain('SIGKILL');
  });

  it('reports a cell that dies outside of any turn as an error that may be retried', async () => {
    const file = fakeCell('dies', `process.on('message', () => process.exit(3)); process.send({ kind: 'ready' });`);
    await expect(open({ cellFile: file }).play(job([first, first]))).rejects.toMatchObject({
      code: 'SANDBOX.CELL_DIED',
      details: { retryable: true },
    });
  });

  it('blames nobody when a cell dies in the turns of different seats', async () => {
    const program = `process.on('message', ({ order }) => {
      writeSync(3, JSON.stringify([order, order % 2]) + '\\nend\\n', 0); process.abort(); });
      process.send({ kind: 'ready' });`;
    await expect(open({ cellFile: fakeCell('aborts', program) }).play(job([first, first]))).rejects.toMatchObject({
      code: 'SANDBOX.CELL_DIED',
    });
  });

  it('says so when cells do not start at all', async () => {
    const file = fakeCell('never', 'throw new Error("broken on purpose");');
    await expect(open({ cellFile: file }).play(job([first, first]))).rejects.toMatchObject({
      code: 'SANDBOX.CELL_START_FAILED',
      details: { output: expect.stringContaining('broken on purpose') },
    });
  });

  it('checks sources, also those that never come back', async () => {
    const pool = open();
    expect(await pool.check(first.source)).toEqual({ ok: true });
    expect(await pool.check('function act( {')).toMatchObject({ ok: false, rule: 'syntax_error' });
    expect(
      await pool.check('[].indexOf.call({ length: 2 ** 53 - 1 }, 1)', 'javascript', { wallMs: 1_000 }),
    ).toMatchObject({
      ok: false,
      rule: 'timeout',
    });
  });

  it('refuses jobs that make no sense before they cost anything', async () => {
    const pool = open({ queueLength: 1 });
    await expect(pool.play({ ...job([first, first]), game: 'go' })).rejects.toMatchObject({
      code: 'SANDBOX.UNKNOWN_GAME',
    });
    await expect(pool.play(job([first]))).rejects.toMatchObject({ code: 'SANDBOX.WRONG_SEATS' });
    await expect(pool.play(job([first, { ...first, codeDigest: 'x' }]))).rejects.toMatchObject({
      code: 'SANDBOX.DIGEST_MISMATCH',
    });
    await expect(pool.play(job([first, first], { wallMs: -1 }))).rejects.toMatchObject({ code: 'SANDBOX.BAD_LIMITS' });
    const waiting = pool.play(job([first, first]));
    await expect(pool.play(job([first, first]))).rejects.toMatchObject({ code: 'SANDBOX.QUEUE_FULL' });
    await waiting;
  });
});

describe('closing', () => {
  it('waits for the matches under way and leaves no cell behind', async () => {
    const pool = open({ size: 2 });
    const playing = Promise.all(
      Array.from({ length: 10 }, (_, index) => pool.play(job([first, first], {}, `${index}`))),
    );
    const { pids } = pool;
    await pool.close();
    expect((await playing).length).toBe(10);
    expect(pids.length).toBe(2);
    expect(pids.filter(isAlive)).toEqual([]);
    await expect(pool.play(job([first, first]))).rejects.toMatchObject({ code: 'SANDBOX.CLOSED' });
  });

  it('gives up matches when told to', async () => {
    const pool = open();
    const jobs = Promise.allSettled([pool.play(job([hung, first])), pool.play(job([first, first]))]);
    await until(() => pool.waiting < 2);
    const { pids } = pool;
    await pool.close({ kill: true });
    for (const result of await jobs) expect(result).toMatchObject({ reason: { code: 'SANDBOX.CLOSED' } });
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it('ends cells when the host disappears, even one that hangs in native code', async () => {
    const module = pathToFileURL(join(root, 'dist/sandbox-runner/index.js')).href;
    const host = join(folder, 'host.mjs');
    writeFileSync(
      host,
      `import { Cells } from ${JSON.stringify(module)};
       const pool = new Cells({ size: 2 });
       pool.play(${JSON.stringify(job([hung, first]))});
       setTimeout(() => { process.stdout.write(pool.pids.join(' ')); process.kill(process.pid, 'SIGKILL'); }, 2500);`,
    );
    const { stdout } = await promisify(execFile)(process.execPath, [host]).catch((error: { stdout: string }) => error);
    const pids = stdout.split(' ').map(Number);
    expect(pids.length).toBe(2);
    await until(() => !pids.some(isAlive));
  });
});

describe('turn markers', () => {
  it('can be read back after any turn, whatever an earlier match has left in the file', () => {
    let file = '';
    const writer = new MarkerWriter((text, position) => {
      file = file.slice(0, position) + text + file.slice(position + text.length);
    });
    const turn = (number: number) => ({ turn: number, seat: number % 2, action: 123456, fuel: 42 });
    writer.begin(1);
    for (let number = 1; number <= 9; number += 1) writer.turn(number % 2, turn(number));
    expect(readMarkers(file, 1).turns.length).toBe(9);
    expect(readMarkers(file, 2)).toEqual({ seat: undefined, turns: [] });
    writer.begin(2);
    expect(readMarkers(file, 2)).toEqual({ seat: undefined, turns: [] });
    writer.turn(0, undefined);
    writer.turn(1, turn(1));
    expect(readMarkers(file, 2)).toEqual({ seat: 1, turns: [turn(1)] });
    expect(readMarkers(file, 1)).toEqual({ seat: undefined, turns: [] });
  });

  it('carry any action a game may define, and survive a line that was cut off', () => {
    let file = '';
    const writer = new MarkerWriter((text, position) => {
      expect(text).toMatch(/^[\x20-\x7e\n]*$/);
      file = file.slice(0, position) + text + file.slice(position + text.length);
    });
    const actions = [0, 'e7e8q', 'a b\nend\n', 'Zürich \u{1f600}', ['C', 'D'], { to: [1, null], yes: true }, null];
    const turns = actions.map((action, index) => ({ turn: index + 1, seat: index % 2, action, fuel: index }));
    writer.begin(7);
    for (const turn of turns) writer.turn(turn.seat, turn);
    expect(readMarkers(file, 7)).toEqual({ seat: 0, turns });
    const cut = file.slice(0, file.indexOf('"to"'));
    expect(readMarkers(cut, 7)).toEqual({ seat: 0, turns: turns.slice(0, 5) });
  });
});

describe('cells for every runtime', () => {
  it('let an agent in Python and one in JavaScript meet', { timeout: 120_000 }, async (context) => {
    const why = whyNoProcessSandboxes();
    if (why) context.skip(`process sandboxes: ${why}`);
    const cells = new Cells({ size: 1 });
    onTestFinished(() => cells.close({ kill: true }));
    const source = 'def act(observation):\n    return observation["legal"][0]\n';
    const python = { source, codeDigest: codeDigest(source), runtime: 'python' } as const;
    expect(await cells.check(source, 'python')).toEqual({ ok: true });
    expect(await cells.check('def act(', 'python')).toMatchObject({ ok: false, rule: 'syntax_error' });
    const record = await cells.play(job([first, python]));
    expect(record).toMatchObject({ driver: 'wasm+process/python', outcome: { winner: 0, reason: 'line' } });
    expect(record.usage.map(({ driver, meter }) => [driver, meter])).toEqual([
      ['wasm', 'fuel'],
      ['process/python', 'time'],
    ]);
  });
});
