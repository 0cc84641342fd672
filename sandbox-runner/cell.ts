/**
 * The program of a cell: a child process that plays one match at a time and holds nothing between them. Referee and
 * sandboxes share it, so that a turn costs microseconds; whatever goes wrong in here, only this process is lost.
 */
import { writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { type AgentRuntime, asAgonError, invariant } from '../services/kernel/index.js';
import type { AgentInstance, Driver } from './drivers/driver.js';
import { ProcessDriver } from './drivers/process.js';
import type { Language } from './drivers/runtimes.js';
import { WasmDriver } from './drivers/wasm.js';
import { gameNamed } from './games/index.js';
import { defaultLimits, type Limits } from './limits.js';
import {
  driverNames,
  type FromCell,
  hostedRuntime,
  liveFeed,
  MarkerWriter,
  markerFd,
  type Progress,
  runtimesOf,
  type ToCell,
} from './protocol.js';
import { type MatchRecord, playMatch } from './referee.js';

const wasm = new WasmDriver();
/** Opened when an agent first needs one, and kept: starting the first sandbox is what takes long. */
const processes = new Map<Language, Promise<ProcessDriver>>();

async function driverFor(runtime: AgentRuntime, limits: Limits): Promise<Driver> {
  if (runtime === 'javascript') return wasm;
  let driver = processes.get(runtime);
  if (!driver) {
    driver = ProcessDriver.open(runtime);
    processes.set(runtime, driver);
    // What this machine lacks today, it may have tomorrow.
    driver.catch(() => processes.delete(runtime));
    await (await driver).warm(SANDBOXES_WARM, limits);
  }
  return driver;
}

/** For the seats of the next match, and of the one after it: a sandbox takes longer to start than a match to play. */
const SANDBOXES_WARM = 4;

const tell = (message: FromCell): void => {
  process.send?.(message);
};

const markers = new MarkerWriter((text, position) => writeSync(markerFd, text, position));

async function play(order: Extract<ToCell, { kind: 'play' }>): Promise<MatchRecord> {
  const seats: AgentInstance[] = [];
  const { job, limits } = order;
  const { seed } = job;
  try {
    for (const [seat, agent] of job.agents.entries()) {
      const driver = await driverFor(hostedRuntime(agent), limits);
      seats.push(await driver.load(agent.source, { seed, seat, limits, endpoint: agent.endpoint }));
    }
    const heard = (progress: Progress) => tell({ kind: 'progress', order: order.order, progress });
    const live = order.live ? liveFeed(seats, heard) : undefined;
    const record = await playMatch({
      game: gameNamed(job.game),
      seed,
      seats,
      limits,
      driver: driverNames(runtimesOf(job)),
      agents: job.agents.map(({ codeDigest }) => codeDigest),
      onTurn: (_turn, seat, last) => {
        markers.turn(seat, last);
        live?.(last);
      },
    });
    live?.(record.turns.at(-1));
    return record;
  } finally {
    for (const agent of seats) agent.dispose();
  }
}

/** The one agent that sits here while its match is refereed elsewhere. */
let seated: { readonly agent: AgentInstance; printed: number } | undefined;

async function sit(order: Extract<ToCell, { kind: 'seat' }>): Promise<FromCell> {
  const { seed, seat, limits, runtime, source } = order;
  const driver = await driverFor(runtime, limits);
  const agent = await driver.load(source, { seed, seat, limits });
  seated = { agent, printed: 0 };
  const { driver: name, driverVersion, meter } = agent;
  return { kind: 'seated', order: order.order, at: { driver: name, driverVersion, meter } };
}

async function callSeat({ order, call }: Extract<ToCell, { kind: 'call' }>): Promise<FromCell> {
  invariant(seated, 'Somebody sits here.');
  const { agent } = seated;
  const answer = await agent[call.method](call.argument, call.fuel);
  const printed = agent.log().slice(seated.printed);
  seated.printed += printed.length;
  return { kind: 'answered', order, answered: { answer, usage: agent.usage, printed } };
}

async function answer(message: Exclude<ToCell, { kind: 'leave' }>): Promise<FromCell> {
  const { order } = message;
  markers.begin(order);
  try {
    if (message.kind === 'play') return { kind: 'played', order, record: await play(message) };
    if (message.kind === 'seat') return await sit(message);
    if (message.kind === 'call') return await callSeat(message);
    if (message.kind === 'stand') {
      seated?.agent.dispose();
      seated = undefined;
      return { kind: 'stood', order };
    }
    markers.turn(0, undefined);
    const driver = await driverFor(message.runtime, message.limits);
    return { kind: 'checked', order, check: await driver.check(message.source, message.limits) };
  } catch (error) {
    const { code, message: text } = asAgonError(error);
    return { kind: 'failed', order, code, message: text };
  }
}

/**
 * A cell that is caught in native code hears no event, not even that its parent is gone. A second thread does, and
 * ends the process, so that no orphan ever burns a core.
 */
function watchParent(): void {
  const program = `
    const { workerData } = require('node:worker_threads');
    setInterval(() => { if (process.ppid !== workerData) process.kill(process.pid, 'SIGKILL'); }, 500);`;
  const resourceLimits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 };
  new Worker(program, { eval: true, workerData: process.ppid, resourceLimits }).unref();
}

/** Sandboxes end with this process in any case; leaving in peace also clears away what the kernel keeps of them. */
async function leave(): Promise<never> {
  const opened = await Promise.allSettled(processes.values());
  await Promise.allSettled(opened.map((each) => each.status === 'fulfilled' && each.value.close()));
  process.exit(0);
}

process.on('disconnect', leave);
process.on('message', (message: ToCell) => {
  if (message.kind === 'leave') void leave();
  else void answer(message).then(tell);
});
watchParent();
await wasm.warm(2, defaultLimits);
tell({ kind: 'ready' });
