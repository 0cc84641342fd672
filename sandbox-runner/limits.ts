import { z } from 'zod';
import { AgonError } from '../services/kernel/index.js';

export const KiB = 1024;
export const MiB = 1024 * KiB;

/** A whole number from `min` to `max`, and what it is when left out. */
export const whole = (min: number, max: number, usual: number) => z.number().int().min(min).max(max).default(usual);

/**
 * Every limit on an agent, in one place. Thinking is paid for in the unit that a driver can measure. The wasm driver
 * counts fuel, in ticks of about ten thousand calls and loop rounds, some 0.4 ms on a machine of 2024, and always the
 * same count for the same code. Drivers that run native code can only count time: milliseconds of CPU, which a busy
 * machine does not inflate. Each seat pays in the unit of its own driver; the limits for both are always recorded.
 *
 * The bounds are what the drivers can hold. Below 4 MiB the engine cannot report its own errors; above 512 KiB of
 * stack the native stack of a cell could run out before the engine notices. Node alone has a dozen threads.
 */
const limitsSchema = z.strictObject({
  /** Heap of one agent, above what the empty sandbox itself needs. */
  memoryBytes: whole(4 * MiB, 1024 * MiB, 32 * MiB),
  /** Depth of calls inside the sandbox. */
  stackBytes: whole(32 * KiB, 512 * KiB, 256 * KiB),
  /** For running the top level of the source and its `init`, together. */
  initFuel: whole(1, 10_000_000, 500),
  /** Free of charge on every turn; what is not used is lost. */
  turnFuel: whole(1, 10_000_000, 250),
  /** For the whole match: pays for the part of a turn that is above `turnFuel`. */
  bankFuel: whole(0, 100_000_000, 2_500),
  /** The same three for drivers that count time, in milliseconds of CPU. */
  initMs: whole(1, 3_600_000, 2_000),
  turnMs: whole(1, 3_600_000, 100),
  bankMs: whole(0, 3_600_000, 1_000),
  /** The same three for agents that play from outside, in milliseconds by the arena's clock, the network included. */
  clockInitMs: whole(1, 3_600_000, 30_000),
  clockTurnMs: whole(1, 3_600_000, 2_000),
  clockBankMs: whole(0, 3_600_000, 60_000),
  /** How much longer than its CPU time a call may take by the wall clock: for sleeping, and for a busy machine. */
  stallMs: whole(1, 3_600_000, 2_000),
  /** Processes and threads of one agent, the interpreter's own included. */
  tasks: whole(16, 4_096, 64),
  /** Files that an agent may write, all together; they live in memory and count there too. */
  diskBytes: whole(64 * KiB, 1024 * MiB, 16 * MiB),
  /** What an agent may print in a whole match before it loses by `flood`. */
  outputBytes: whole(1 * KiB, 1024 * MiB, 4 * MiB),
  replyBytes: whole(1, 1 * MiB, 4 * KiB),
  /** The code of an agent: its file, or its bundle as it is stored. */
  sourceBytes: whole(1, 16 * MiB, 1 * MiB),
  /** For the whole match, both agents and the referee. */
  wallMs: whole(50, 24 * 60 * 60 * 1000, 30_000),
  /** What is kept of an agent's console output; the rest is dropped without a word. */
  logBytes: whole(0, 1 * MiB, 16 * KiB),
});

export type Limits = Readonly<z.output<typeof limitsSchema>>;

export const defaultLimits: Limits = Object.freeze(limitsSchema.parse({}));

/** What a driver counts: ticks that are the same on every run, time of the CPU, or time by the clock on the wall. */
export type Meter = 'fuel' | 'time' | 'clock';

/** What one seat may spend, in the unit of its driver. */
export function allowanceOf(limits: Limits, meter: Meter) {
  switch (meter) {
    case 'fuel':
      return { init: limits.initFuel, turn: limits.turnFuel, bank: limits.bankFuel };
    case 'time':
      return { init: limits.initMs, turn: limits.turnMs, bank: limits.bankMs };
    case 'clock':
      return { init: limits.clockInitMs, turn: limits.clockTurnMs, bank: limits.clockBankMs };
  }
}

/** Fills in the defaults and refuses a limit that no driver could hold. */
export function limitsFrom(overrides: Partial<Limits> = {}): Limits {
  const parsed = limitsSchema.safeParse({ ...defaultLimits, ...overrides });
  if (parsed.success) return Object.freeze(parsed.data);
  const issues = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'limits'}: ${issue.message}`);
  throw new AgonError('SANDBOX.BAD_LIMITS', `These limits cannot be held: ${issues.join('; ')}.`, { issues });
}
