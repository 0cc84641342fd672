import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { limitsFrom, ProcessDriver, runtimeFor } from '../../sandbox-runner/index.js';
import { invariant } from '../../services/kernel/index.js';
import { type BenchOptions, compare, perSecond, type Report, scaled } from './rounds.js';

const CALLS = 2_000;
const STARTS = 5;

/** Reads a line and answers with one, as the shim does, without a sandbox and without an agent. */
const ECHO = `import os
pending = b""
while True:
    chunk = os.read(0, 65536)
    if not chunk:
        break
    pending += chunk
    while b"\\n" in pending:
        line, pending = pending.split(b"\\n", 1)
        os.write(1, line + b"\\n")
`;
const OBSERVATION = { legal: [0, 1, 2, 3, 4, 5, 6], turn: 1 };

/** What the walls cost: a call into a started sandbox, and starting one. */
export async function sandbox(options: BenchOptions): Promise<Report> {
  const limits = limitsFrom();
  const { command } = await runtimeFor('python');
  // The interpreter as the sandbox starts it, without anything to run.
  const [interpreter = '', ...flags] = command.slice(0, command.indexOf('-c'));
  const driver = await ProcessDriver.open('python');
  const source = 'def act(observation):\n    return observation["legal"][0]\n';
  const agent = await driver.load(source, { seed: 'bench', seat: 0, limits });
  const started = await agent.init({}, limits.initMs);
  invariant(started.kind === 'done', 'The agent of the benchmark starts.');
  const echo = startEcho(interpreter, flags);
  const calls = scaled(options, CALLS);
  const each = (count: number, work: () => Promise<unknown>) => () =>
    perSecond(count, async () => {
      for (let i = 0; i < count; i++) await work();
    });
  const coldStart = async () => {
    const cold = await driver.load(source, { seed: 'bench', seat: 0, limits });
    await cold.init({}, limits.initMs);
    cold.dispose();
  };
  const contenders = {
    'warm call': each(calls, () => agent.act(OBSERVATION, limits.turnMs)),
    pipe: each(calls, () => echo.ask(JSON.stringify(OBSERVATION))),
    'cold sandbox': each(STARTS, coldStart),
    interpreter: each(STARTS, () => bareStart(interpreter, [])),
    'lean interpreter': each(STARTS, () => bareStart(interpreter, flags)),
  };
  try {
    // How many times as long ours takes, so the other way round.
    return await compare(contenders, options, {
      ratios: {
        warm: ['pipe', 'warm call'],
        cold: ['interpreter', 'cold sandbox'],
        coldLean: ['lean interpreter', 'cold sandbox'],
      },
      notes: [
        'Ratios are times: a warm call in plain pipe round trips to the same interpreter (at most 1.5), and a cold sandbox ' +
          'with an agent started in it in starts of the bare interpreter (at most 1.5); coldLean is against an interpreter ' +
          'with the options of the sandbox, which load less. Cold is all but the cgroup and the launcher that waits in it.',
      ],
    });
  } finally {
    agent.dispose();
    echo.stop();
    await driver.close();
  }
}

async function bareStart(interpreter: string, flags: readonly string[]): Promise<void> {
  await once(spawn(interpreter, [...flags, '-c', 'pass']), 'close');
}

function startEcho(interpreter: string, flags: readonly string[]): { ask(line: string): Promise<void>; stop(): void } {
  const child = spawn(interpreter, [...flags, '-c', ECHO], { stdio: ['pipe', 'pipe', 'inherit'] });
  return {
    ask: async (line) => {
      child.stdin.write(`${line}\n`);
      await once(child.stdout, 'data');
    },
    stop: () => child.stdin.end(),
  };
}
