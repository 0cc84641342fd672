import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createHandle,
  type EventStore,
  type Handle,
  type Handled,
  type RecordedEvent,
} from '../../services/kernel/index.js';
import { verifyStore } from '../cli/verify.js';
import { commandNamed, contextOf } from '../harness/write-side.js';
import type { Sent } from './workload.js';

/** What the store promised: these events, here, for good. */
export interface Acknowledged {
  readonly commandId: string;
  readonly stream: string;
  /** Of the command's last event. */
  readonly revision: number;
  readonly position: number;
  readonly events: number;
}

/** What came through a pipe before its writer was killed. */
export interface Witnessed {
  readonly sent: Map<string, Sent>;
  readonly acknowledged: Map<string, Acknowledged>;
}

export interface Scene {
  readonly folder: string;
  readonly store: EventStore;
  /** The whole log, as the reopened store gives it. */
  readonly log: readonly RecordedEvent[];
  readonly witnessed: Witnessed;
  /** Where the writer's projections were, if it had any. */
  readonly databaseUrl?: string | undefined;
}

/** Says what is wrong, a sentence each; nothing when all is well. Checks that write come last. */
export type Check = (scene: Scene) => Promise<readonly string[]>;

/** Everything that must hold after a kill and a reopening. */
export const checks: readonly Check[] = [
  positionsAreDense,
  nothingAcknowledgedIsLost,
  chainsHold,
  indexEqualsLog,
  projectionsEqualRebuild,
  repeatedCommandsAddNothing,
  unansweredCommandsHappenOnce,
];

export async function readLog(store: EventStore): Promise<RecordedEvent[]> {
  const log: RecordedEvent[] = [];
  for (;;) {
    const page = await store.readAll({ after: log.at(-1)?.position ?? 0 });
    if (page.length === 0) return log;
    log.push(...page);
    await sleep(0);
  }
}

/** One text for a whole log: two logs with the same digest hold the same events. */
export const digestOf = (log: readonly RecordedEvent[]): string =>
  hash('sha256', log.map((event) => JSON.stringify(event)).join('\n'));

async function positionsAreDense({ store, log }: Scene): Promise<string[]> {
  const faults: string[] = [];
  log.forEach(({ position }, i) => {
    if (position !== i + 1) faults.push(`Position ${position} stands where ${i + 1} belongs.`);
  });
  const last = await store.lastPosition();
  if (last !== log.length) faults.push(`The store ends at ${last}, its log at ${log.length}.`);
  return faults;
}

async function nothingAcknowledgedIsLost({ log, witnessed }: Scene): Promise<string[]> {
  const faults: string[] = [];
  for (const { commandId, stream, revision, position, events } of witnessed.acknowledged.values()) {
    for (let i = 0; i < events; i++) {
      const back = events - 1 - i;
      const event = log[position - 1 - back];
      const there = event?.stream === stream && event.revision === revision - back;
      if (!there || event.meta.commandId !== commandId) {
        faults.push(`Lost: event ${i} of command ${commandId}, acknowledged at position ${position - back}.`);
      }
    }
  }
  return faults;
}

export async function chainsHold({ store }: Pick<Scene, 'store'>): Promise<string[]> {
  const { verified, fault } = await verifyStore(store);
  return verified ? [] : [`The log does not hold: ${fault?.message}`];
}

export async function indexEqualsLog({ store, log }: Pick<Scene, 'store' | 'log'>): Promise<string[]> {
  const faults: string[] = [];
  const streams = new Map<string, RecordedEvent[]>();
  for (const event of log) {
    const events = streams.get(event.stream) ?? [];
    streams.set(event.stream, events);
    events.push(event);
  }
  for (const [stream, expected] of streams) {
    const events: RecordedEvent[] = [];
    for (;;) {
      const page = await store.readStream(stream, { fromRevision: events.length });
      if (page.length === 0) break;
      events.push(...page);
    }
    const same = events.length === expected.length && events.every((event, i) => event.id === expected[i]?.id);
    if (!same) faults.push(`The index of ${stream} gives ${events.length} events, the log ${expected.length}.`);
    const head = await store.head(stream);
    if (head?.hash !== expected.at(-1)?.hash) faults.push(`The head of ${stream} is not its last event.`);
  }
  return faults;
}

async function projectionsEqualRebuild({ log, databaseUrl }: Scene): Promise<string[]> {
  if (!databaseUrl) return [];
  const { compareWithRebuild } = await import('./rows.js');
  return compareWithRebuild(log, databaseUrl);
}

function again(handle: Handle, { type, data, meta }: Sent): Promise<Handled> {
  const command = commandNamed(type, data, meta);
  return handle(contextOf(command), command);
}

async function repeatedCommandsAddNothing({ store, log, witnessed }: Scene): Promise<string[]> {
  const faults: string[] = [];
  const handle = createHandle({ store });
  for (const { commandId, position } of witnessed.acknowledged.values()) {
    const sent = witnessed.sent.get(commandId);
    if (!sent) continue;
    const handled = await again(handle, sent);
    if (!handled.repeated || handled.position !== position) faults.push(`Command ${commandId} was carried out again.`);
  }
  if ((await store.lastPosition()) !== log.length) faults.push('Repeated commands made the log longer.');
  return faults;
}

/** Whether an unanswered command had been written is unknown to its sender, who sends it again: it counts once. */
async function unansweredCommandsHappenOnce({ store, log, witnessed }: Scene): Promise<string[]> {
  const faults: string[] = [];
  const handle = createHandle({ store });
  for (const sent of witnessed.sent.values()) {
    if (witnessed.acknowledged.has(sent.meta.id)) continue;
    const written = log.filter((event) => event.meta.commandId === sent.meta.id).length;
    const { repeated, events } = await again(handle, sent);
    if (repeated !== written > 0 || (repeated && events.length !== written)) {
      faults.push(`Command ${sent.meta.id} had ${written} events in the log and was ${repeated ? '' : 'not '}known.`);
    }
  }
  return faults;
}
