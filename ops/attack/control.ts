import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { bootCode, type Runtime } from '../../sandbox-runner/index.js';
import { type Attack, type Evidence, sourceOf } from './attack.js';
import { unpackCarelessly } from './bundle.js';
import type { World } from './world.js';

const controlMs = 40_000;

/**
 * A host without any sandbox, as careless as hosts used to be: the agent is a plain child with the host's rights,
 * environment and an open file of the host, and whatever it writes anywhere in the form of an answer is believed. The
 * attacks bound themselves, so that one that succeeds here does no harm.
 */
function naiveHost(runtime: Runtime, code: (folder: string) => object, world: World) {
  const [program = '', ...args] = runtime.command;
  const folder = mkdtempSync(join(tmpdir(), 'agon-control-'));
  const order = code(folder);
  const leaked = openSync(world.facts.secretFile, 'r');
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...process.env, ...runtime.environment },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'ignore', leaked],
  });
  closeSync(leaked);
  const requests = child.stdio[3] as Duplex;
  const replies = child.stdio[4] as Duplex;
  for (const pipe of [requests, replies]) pipe.on('error', () => {});
  let log = '';
  let text = '';
  let hear: (answer: string) => void = () => {};
  const listen = (chunk: Buffer): void => {
    text += chunk.toString();
    const lines = text.split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) if (/^\S+ [A-Z]/.test(line)) hear(line.slice(line.indexOf(' ') + 1));
  };
  replies.on('data', listen);
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(0, 100_000);
      if (stream === child.stdout && chunk.length < 1_000) listen(chunk);
    });
  }
  const ended = new Promise<string>((resolve) => {
    // Not `close`: what an orphan holds open would keep us waiting for it.
    child.once('exit', () => setTimeout(() => resolve('ended'), 50));
    child.once('error', () => resolve('ended'));
    setTimeout(() => resolve('ended'), controlMs).unref();
  });
  const call = (verb: string, argument: unknown): Promise<string> => {
    const answered = new Promise<string>((resolve) => {
      hear = resolve;
    });
    requests.write(`t ${verb} ${JSON.stringify(argument)}\n`);
    return Promise.race([answered, ended]);
  };

  return {
    async ask(): Promise<Evidence> {
      const words = [1, 2, 3, 4];
      let answer = await call('boot', { ...order, seed: 'control', words, replyBytes: 2 ** 30 });
      if (answer.startsWith('R')) answer = await call('init', world.facts);
      if (answer.startsWith('R')) answer = await call('act', world.facts);
      const seen: Pick<Evidence, 'reply' | 'fault'> = answer.startsWith('R')
        ? { reply: JSON.parse(answer.slice(1)) }
        : { fault: { rule: 'ended', detail: `${answer} ${log}`.slice(0, 300) } };
      return {
        ...seen,
        get log() {
          return log;
        },
      };
    },
    end() {
      try {
        if (child.pid) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // All of its group have ended by themselves.
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function control(runtime: Runtime, attack: Attack, world: World): Promise<Evidence> {
  const { neighbour: source } = attack;
  const neighbour = source === undefined ? undefined : naiveHost(runtime, () => ({ source }), world);
  const careless = (folder: string) => {
    if (!attack.archive) return bootCode(sourceOf(attack, world));
    unpackCarelessly(attack.archive.pack(world.facts), join(folder, 'agent'));
    return { bundle: { entry: attack.archive.entry, files: {} } };
  };
  const agent = naiveHost(runtime, careless, world);
  try {
    await neighbour?.ask();
    return await agent.ask();
  } finally {
    agent.end();
    neighbour?.end();
  }
}
