import { setTimeout as sleep } from 'node:timers/promises';
import { auditMoney } from '../../projections/balances/audit.js';
import { LmdbCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { PolicyDeadLetters } from '../../services/adapters/bus/dead-letters.js';
import { EventStoreDbStore } from '../../services/adapters/store/eventstoredb.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { type EventStore, isAgonError, randomIds, systemClock } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { groupOfPolicy, policies } from '../../services/runtime/policies.js';
import { withFolder } from '../harness/folders.js';
import { TamperedStore } from '../harness/tampered-store.js';
import { openWriteSide } from '../harness/write-side.js';
import { endWithin, startChild } from './children.js';
import { countIn, leftovers, verifiedLogOf } from './outcomes.js';
import { runPayments } from './payout.js';
import type { Run } from './run.js';
import { COMMANDS, type Phase, somePoint } from './settle.js';
import { between, seededRandom } from './workload.js';

const KILLS = 3;
const STUCK_MS = 240_000;
/** One seed of a run goes without a server for as long as an election may take; the others for a moment. */
const AWAY_MS = { long: 60_000, most: 1_500 } as const;

/** A server of the log, which refuses to read from a position that is no event's. */
interface LogServer {
  readonly url: string;
  open(): Promise<EventStore>;
  /** It answers nobody for so long; left out where it is not ours to stop. */
  away?(ms: number): Promise<void>;
  /** Removes streams behind Agon's back; left out where others keep theirs. */
  readonly tampered?: TamperedStore;
  close(): Promise<void>;
}

/** At this address, or a stand-in of our own: the endpoint over a log whose positions have gaps. */
export const storeAt = (url?: string): Run => {
  let longAway = url === undefined;
  return {
    name: 'store',
    about: 'an arena killed with matches, holds, payments and dead letters open, its log on a server of EventStoreDB',
    holds: 'it opens again and finishes, nothing is lost, and what others remove is named',
    lanes: 1,
    start: (seeds) =>
      seeds(async (seed) => {
        const awayMs = longAway ? AWAY_MS.long : undefined;
        longAway = false;
        return runSeed(seed, url, awayMs);
      }),
  };
};

async function runSeed(seed: number, url: string | undefined, awayMs: number | undefined) {
  const [house, till] = [await serverFor(url), await serverFor(url)];
  try {
    const played = await playHouse(seed, house, awayMs);
    const paid = await runPayments(seed, till);
    const kills = played.kills + paid.kills;
    return {
      ...played,
      kills,
      killed: [...played.killed, ...paid.killed],
      failures: [...played.failures, ...paid.failures],
    };
  } finally {
    await house.close();
    await till.close();
  }
}

function serverFor(url: string | undefined): Promise<LogServer> | LogServer {
  if (url === undefined) return standIn();
  // Of its own for every seed: a server keeps what was written before.
  const own = `${url}${url.includes('?') ? '&' : '?'}streamPrefix=${randomIds()}.`;
  return { url: own, open: () => EventStoreDbStore.open(own), close: async () => {} };
}

async function standIn(): Promise<LogServer> {
  const tampered = new TamperedStore(new MemoryEventStore({ gaps: true }));
  const [{ serveEventStore }, { check, isOwn }] = await Promise.all([
    import('../../gateway/eventstore/server.js'),
    import('../../gateway/eventstore/endpoint.js'),
  ]);
  const anybody = { actor: { id: 'chaos', role: 'operator' }, write: true } as const;
  const onInternalError = (error: unknown) => console.error(error);
  const clock = systemClock;
  const ports = { store: tampered, clock, ids: randomIds, isOwn, check, accessOf: () => anybody, onInternalError };
  const serve = (port: number) => serveEventStore(ports, { host: '127.0.0.1', port });
  let serving = await serve(0);
  const { address } = serving;
  const url = `esdb+discover://${address}?tls=false&maxDiscoverAttempts=3`;
  return {
    url,
    tampered,
    open: () => EventStoreDbStore.open(url),
    away: async (ms) => {
      await serving.close();
      await sleep(ms);
      serving = await serve(Number(address.split(':')[1]));
    },
    close: async () => {
      await serving.close();
      await tampered.close();
    },
  };
}

/** A house that plays for money, killed at seeded points, then left to finish while its server goes away. */
function playHouse(seed: number, server: LogServer, awayMs: number | undefined) {
  const random = seededRandom('store', seed);
  const failures: string[] = [];
  const killed: Phase[] = [];
  let away = 0;
  return withFolder(async (folder) => {
    for (;;) {
      // One whose server is away for long has all of its work before it.
      const point = awayMs === undefined && killed.length < KILLS ? somePoint(random) : undefined;
      const house = startChild('house', [folder, `${seed}`, point ? JSON.stringify(point) : '', server.url]);
      let ended = false;
      const ending = endWithin(house, STUCK_MS).finally(() => {
        ended = true;
      });
      if (!point) {
        // In the middle of its work: one that has finished already is not held up by it.
        const before = await server.tampered?.lastPosition();
        const events = between(random, 1, 4);
        const written = async () => (await server.tampered?.readAll({ after: before ?? 0, limit: events }))?.length;
        while (!ended && server.tampered && (await written()) !== events) await sleep(2);
        if (!ended) {
          await server.away?.(awayMs ?? between(random, 100, AWAY_MS.most));
          away += 1;
        }
      }
      const how = await ending;
      if (point && how === 'SIGKILL') {
        killed.push(COMMANDS[point.command]);
        continue;
      }
      // A point that is never met lets it come to its end.
      if (how !== 'exit 0') failures.push(`It ended with ${how}: ${house.errors}`);
      break;
    }
    const log = await verifiedLogOf(await server.open(), failures);
    failures.push(...(await deadLetterFaults(folder, server)));
    failures.push(...auditMoney(log), ...leftovers(log), ...(await removalFaults(server)));
    const settled = countIn(log, 'MatchSettled');
    return { kills: killed.length, killed, away, settled, events: log.length, failures };
  });
}

/** A dead letter of an event that was taken in finds it again by its position, and changes nothing. */
async function deadLetterFaults(folder: string, server: LogServer): Promise<string[]> {
  const side = await openWriteSide(folder, undefined, server.url);
  const checkpoints = new LmdbCheckpoints(`${folderLayout(folder).bus}.letters`);
  try {
    const before = await side.store.lastPosition();
    const buried = [];
    for (let after = 0; ; ) {
      const page = await side.store.readAll({ after });
      for (const { type, position, id: eventId } of page) {
        const policy = policies.find(({ types }) => types.includes(type));
        if (!policy) continue;
        const group = groupOfPolicy(policy);
        const letter = { group, position, eventId, code: 'CHAOS.BURIED', message: 'put aside', attempts: 1 };
        await checkpoints.bury(letter);
        buried.push(letter);
      }
      if (page.length === 0) break;
      after = page.at(-1)?.position ?? 0;
    }
    const letters = new PolicyDeadLetters({ store: side.store, checkpoints, policies, execute: side.execute });
    const { done, left } = await letters.replay();
    const faults = left
      .filter(({ code }) => /^(BUS|STORE)\./.test(code))
      .map(({ code, message }) => `A dead letter was not found again: ${code} ${message}`);
    if (done.length + left.length !== buried.length) faults.push(`${buried.length} dead letters, ${done.length} done.`);
    await side.settled();
    if ((await side.store.lastPosition()) !== before) faults.push('Replaying dead letters added events.');
    return faults;
  } finally {
    await checkpoints.close();
    await side.close();
  }
}

/** Streams are deleted and cut from outside: whoever reads them, or verifies the log, is told by name. */
async function removalFaults({ tampered, open }: LogServer): Promise<string[]> {
  if (!tampered) return [];
  const faults: string[] = [];
  const [known, fresh] = [await open(), await open()];
  const wants = async (code: string, what: string, use: Promise<unknown>) => {
    const got = await use.then(
      () => 'nothing',
      (error: unknown) => (isAgonError(error) ? error.code : String(error)),
    );
    if (got !== code) faults.push(`${what} said ${got}, not ${code}.`);
  };
  await known.readStream('wallet-ada');
  await tampered.delete('wallet-ada');
  await tampered.cut('wallet-bob', 2);
  await wants('STORE.DELETED', 'Reading a deleted stream', known.readStream('wallet-ada'));
  await wants('STORE.TRUNCATED', 'Reading a truncated stream', fresh.readStream('wallet-bob'));
  const named = ((await fresh.removed?.()) ?? []).map(({ code, details }) => `${code} ${details.stream}`).sort();
  const expected = ['STORE.DELETED wallet-ada', 'STORE.TRUNCATED wallet-bob'];
  if (`${named}` !== `${expected}`) faults.push(`What was removed is told as ${named}.`);
  await Promise.all([known.close(), fresh.close()]);
  return faults;
}
