import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Driver,
  ProcessDriver,
  type Runtime,
  runtimeFor,
  WasmDriver,
  whyNoProcessSandboxes,
} from '../../sandbox-runner/index.js';
import { type Attack, type Evidence, judge, type Result, strike, worked } from './attack.js';
import { bundleAttacks } from './bundle.js';
import { control } from './control.js';
import { nodeAttacks } from './node.js';
import { pythonAttacks } from './python.js';
import { wasmAttacks } from './wasm.js';
import { createWorld, type World } from './world.js';

export const targets = [
  // Its agents are JavaScript, and Node is what they would have without it.
  { name: 'wasm', language: 'node', attacks: [...wasmAttacks, ...bundleAttacks.wasm] },
  { name: 'process/python', language: 'python', attacks: [...pythonAttacks, ...bundleAttacks.python] },
  { name: 'process/node', language: 'node', attacks: [...nodeAttacks, ...bundleAttacks.node] },
] as const;

/** Fewer than this with a control that works, and the run proves too little. */
export const attacksNeeded = 45;

/** Why a target cannot be attacked on this machine; undefined when it can. */
export const whyNot = (name: string): string | undefined => (name === 'wasm' ? undefined : whyNoProcessSandboxes());

const controlTries = 3;

const absent = (seen: Evidence): boolean => JSON.stringify(seen.reply ?? null).includes('"absent":true');

async function attackOnce(driver: Driver, runtime: Runtime, attack: Attack, world: World): Promise<Result> {
  const play = async (how: () => Promise<Evidence>): Promise<{ seen: Evidence; got: boolean }> => {
    await world.settle();
    const seen = await how();
    if (attack.afterMs !== undefined) await sleep(attack.afterMs);
    return { seen, got: worked(attack, seen, world) };
  };
  let bare = await play(() => control(runtime, attack, world));
  // One success shows that the attack can work; on a busy machine it may take another try. The sandbox gets only one.
  for (let tries = 1; !bare.got && !absent(bare.seen) && !attack.optional && tries < controlTries; tries += 1) {
    bare = await play(() => control(runtime, attack, world));
  }
  if (!bare.got) {
    const verdict = absent(bare.seen) || attack.optional ? 'absent' : 'NO CONTROL';
    const detail = JSON.stringify(bare.seen.reply ?? bare.seen.fault).slice(0, 200);
    return { driver: driver.name, attack: attack.name, verdict, detail };
  }
  const { seen, got } = await play(() => strike(driver, attack, world));
  return judge(driver.name, attack, got, seen);
}

/** Attacks mostly wait, for limits to be reached. */
const workers = 4;

/** Every attack against one driver, each after its control. */
export async function attackDriver(
  { name, language, attacks }: (typeof targets)[number],
  onResult: (result: Result) => void = () => {},
): Promise<Result[]> {
  const driver = name === 'wasm' ? new WasmDriver() : await ProcessDriver.open(language);
  const runtime = await runtimeFor(language);
  const secret = `secret-${randomBytes(12).toString('hex')}`;
  const worlds = await Promise.all(Array.from({ length: workers }, () => createWorld(secret)));
  const results: Result[] = [];
  const work = async (queue: Attack[], world: World): Promise<void> => {
    for (let attack = queue.shift(); attack; attack = queue.shift()) {
      const result = await attackOnce(driver, runtime, attack, world);
      results.push(result);
      onResult(result);
    }
  };
  try {
    for (const alone of [true, false]) {
      const queue = attacks.filter((attack) => (attack.alone ?? false) === alone);
      await Promise.all(worlds.slice(0, alone ? 1 : workers).map((world) => work(queue, world)));
    }
    return results;
  } finally {
    await driver.close();
    for (const world of worlds) await world.close();
  }
}

export const isGood = ({ verdict }: Result): boolean => verdict === 'contained' || verdict === 'absent';
