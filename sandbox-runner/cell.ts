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
import { defaultLimits, type Limits } from './limits.js';
import {
  type CellAnswer,
  type FromCell,
  hostedRuntime,
  liveFeed,
  MarkerWriter,
  markerFd,
  setupOf,
  type ToCell,
} from './protocol.js';
import { type MatchRecord, playMatch } from './referee.js';

type Order<Kind = unknown> = Exclude<ToCell, { kind: 'leave' }> & { readonly kind: Kind };

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

async function play({ job, limits, live: isLive, order }: Order<'play'>): Promise<MatchRecord> {
  const seats: AgentInstance[] = [];
  try {
    for (const [seat, agent] of job.agents.entries()) {
      const driver = await driverFor(hostedRuntime(agent), limits);
      seats.push(await driver.load(agent.source, { seed: job.seed, seat, limits, endpoint: agent.endpoint }));
    }
    const live = isLive ? liveFeed(seats, (progress) => tell({ kind: 'progress', order, progress })) : undefined;
    const record = await playMatch({
      ...setupOf(job, limits),
      seats,
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

async function sit({ seed, seat, limits, runtime, source }: Order<'seat'>): Promise<CellAnswer> {
  const agent = await (await driverFor(runtime, limits)).load(source, { seed, seat, limits });
  seated = { agent, printed: 0 };
  const { driver, driverVersion, meter } = agent;
  return { kind: 'seated', at: { driver, driverVersion, meter } };
}

async function callSeat({ method, argument, fuel }: Order<'call'>): Promise<CellAnswer> {
  invariant(seated, 'Somebody sits here.');
  const { agent } = seated;
  const answer = await agent[method](argument, fuel);
  const printed = agent.log().slice(seated.printed);
  seated.printed += printed.length;
  return { kind: 'answered', answer, usage: agent.usage, printed };
}

async function check({ source, runtime, limits }: Order<'check'>): Promise<CellAnswer> {
  markers.turn(0, undefined);
  return { kind: 'checked', check: await (await driverFor(runtime, limits)).check(source, limits) };
}

async function answerTo(order: Order): Promise<CellAnswer> {
  switch (order.kind) {
    case 'play':
      return { kind: 'played', record: await play(order) };
    case 'check':
      return check(order);
    case 'seat':
      return sit(order);
    case 'call':
      return callSeat(order);
    case 'stand':
      seated?.agent.dispose();
      seated = undefined;
      return { kind: 'stood' };
  }
}

async function carryOut(order: Order): Promise<void> {
  markers.begin(order.order);
  const answer = await answerTo(order).catch((error: unknown): CellAnswer => {
    const { code, message } = asAgonError(error);
    return { kind: 'failed', code, message };
  });
  tell({ ...answer, order: order.order });
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
  else void carryOut(message);
});
watchParent();
await wasm.warm(2, defaultLimits);
tell({ kind: 'ready' });
