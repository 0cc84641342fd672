import { join } from 'node:path';
import { stdin } from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { createHandle, invariant, newMeta, SYSTEM, seededIds } from '../../services/kernel/index.js';
import { GrantCredits, wallet } from '../../services/wallet/index.js';
import { closing, createDatabase, withFolder, withPostgres } from '../harness/folders.js';
import { commandNamed, contextOf } from '../harness/write-side.js';
import {
  type Acknowledgement,
  checks,
  digestOf,
  indexEqualsLog,
  readLog,
  type Scene,
  type Testimony,
} from './checks.js';
import { endWithin, startChild, tell } from './children.js';
import type { Run } from './run.js';
import { type Answer, copyOf, damages, inflict, Reader } from './torn.js';
import { between, errand, type Random, type SentCommand, seededRandom } from './workload.js';

/** Every so many seeds have projections running beside their writers; they take a second more each. */
const PROJECTED = 10;
const KILLS = 3;
/** Most writers die young, where opening and first writes meet; some live long enough for the index to be written. */
const ACKNOWLEDGEMENTS_MAX = { short: 120, long: 800 };
const LONG_LIVES = 0.05;
const DELAY_MS_MAX = 4;
const STUCK_MS = 30_000;
const FAULTS_SHOWN = 3;

export const append: Run = {
  name: 'append',
  about: 'writers killed at seeded moments, and copies of their logs damaged at seeded places',
  holds: 'nothing acknowledged is lost, nothing is served that was not written, and projections equal a rebuild',
  start: (seeds) =>
    withPostgres(async (url) => {
      const idle: Reader[] = [];
      await seeds(async (seed) => {
        const reader = idle.pop() ?? new Reader();
        try {
          return await runSeed(seed, reader, seed % PROJECTED === 0 ? url : undefined);
        } finally {
          idle.push(reader);
        }
      });
      for (const reader of idle) reader.stop();
    }),
};

/** One seed: kill and reopen on the same folder a few times, then damage copies of what is left. */
async function runSeed(seed: number, reader: Reader, serverUrl: string | undefined) {
  const random = seededRandom('chaos', seed);
  const failures: string[] = [];
  const witnessed: Testimony = { sent: new Map(), acknowledged: new Map() };
  const torn = { reported: 0, harmless: 0 };
  let [kills, events, digest] = [0, 0, ''];
  await withFolder(async (root) => {
    const folder = join(root, 'log');
    const databaseUrl = serverUrl && (await createDatabase(serverUrl, `seed_${seed}`));
    while (kills < KILLS) {
      kills += 1;
      const fault = await writeAndKill([folder, `${seed}/${kills}`, databaseUrl ?? ''], random, witnessed);
      if (fault) failures.push(`Kill ${kills}: ${fault}`);
      // Half of the time the next writer meets the folder as the kill left it, not tidied up by a reader's closing.
      if (kills < KILLS && random() < 0.5) continue;
      const checked = await check({ folder, witnessed, databaseUrl });
      failures.push(...checked.faults.map((what) => `After kill ${kills}: ${what}`));
      ({ events, digest } = checked);
    }
    await tear(folder, digest, random, reader, { torn, failures });
  });
  return { failures, kills, acknowledged: witnessed.acknowledged.size, events, torn };
}

type Line = { readonly sent: SentCommand } | { readonly acknowledged: Acknowledgement };

/** Lets a writer run until it has been acknowledged a seeded number of times, and a seeded moment longer. */
async function writeAndKill(args: readonly string[], random: Random, witnessed: Testimony): Promise<string> {
  const killAfter = between(random, 0, ACKNOWLEDGEMENTS_MAX[random() < LONG_LIVES ? 'long' : 'short']);
  const delayMs = random() * DELAY_MS_MAX;
  let count = 0;
  const writer = startChild<Line>('writer', args, (line, { child }) => {
    if ('sent' in line) witnessed.sent.set(line.sent.meta.id, line.sent);
    else {
      witnessed.acknowledged.set(line.acknowledged.commandId, line.acknowledged);
      count += 1;
    }
    if (count === killAfter && !child.killed) void sleep(delayMs).then(() => child.kill('SIGKILL'));
  });
  const how = await endWithin(writer, STUCK_MS);
  return how === 'SIGKILL' ? '' : `the writer ended with ${how} after ${count} acknowledgements: ${writer.errors}`;
}

const check = (scene: Omit<Scene, 'store' | 'log'>) =>
  closing(LmdbEventStore.open(scene.folder), async (store) => {
    const log = await readLog(store);
    const faults: string[] = [];
    for (const holds of checks) {
      const found = await holds({ ...scene, store, log }).catch((error) => [`${holds.name}: ${String(error)}`]);
      faults.push(...found.slice(0, FAULTS_SHOWN));
    }
    return { events: log.length, digest: digestOf(await readLog(store)), faults };
  });

/** Damages copies of the closed folder, which has this digest: every damage once, mostly to the log. */
async function tear(
  folder: string,
  digest: string,
  random: Random,
  reader: Reader,
  into: { torn: { reported: number; harmless: number }; failures: string[] },
): Promise<void> {
  for (const damage of damages) {
    const { copy, remove } = copyOf(folder, `torn-${damage}`);
    const file = random() < 0.67 ? 'events.mdb' : 'streams.mdb';
    const how = inflict(damage, join(copy, file), random);
    const answer = await reader.ask(copy);
    remove();
    if (answer.outcome === 'reported') into.torn.reported += 1;
    else if (answer.outcome === 'served' && answer.digest === digest) into.torn.harmless += 1;
    else into.failures.push(`${file} ${how}: ${JSON.stringify(answer)}`);
  }
}

const WRITERS = 12;
const REPEATS = 0.05;

/** Child: writes on and on, and tells at once what it was promised. */
export async function write([folder = '', run = '', databaseUrl]: string[]): Promise<void> {
  const store = await LmdbEventStore.open(folder);
  if (databaseUrl) {
    // Loaded only where it is wanted: most writers have no projections, and start faster for it.
    const { followWithProjections } = await import('./rows.js');
    await followWithProjections(store, databaseUrl);
  }
  const handle = createHandle({ store });
  const send = async (sent: SentCommand, random: Random) => {
    const command = commandNamed(sent.type, sent.data, sent.meta);
    const context = contextOf(command);
    tell({ sent });
    const { stream, revision, position, events } = await handle(context, command);
    if (events.length === 0) return events;
    tell({ acknowledged: { commandId: command.meta.id, stream, revision, position, events: events.length } });
    if (random() < REPEATS) {
      const again = await handle(context, command);
      invariant(again.repeated && again.position === position, `${command.meta.id} was carried out twice.`);
    }
    return events;
  };
  const writeOn = async (writer: number): Promise<never> => {
    const random = seededRandom(run, writer);
    const ids = seededIds(`${run}/${writer}`);
    for (;;) await errand(random, ids, (sent) => send(sent, random));
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => writeOn(writer)));
}

const GRANTS = 40;

/** Child: opens every folder it is told, as the arena would, and says what it found. */
export async function answerReaders(): Promise<void> {
  for await (const folder of createInterface({ input: stdin })) tell(await readThrough(folder));
}

async function readThrough(folder: string): Promise<Answer> {
  let store: LmdbEventStore | undefined;
  try {
    store = await LmdbEventStore.open(folder);
    const log = await readLog(store);
    const digest = digestOf(log);
    const [what] = await indexEqualsLog({ store, log });
    if (what) return { outcome: 'inconsistent', what };
    // Damage that nobody has noticed must not come out later: write on, and read it all again.
    const handle = createHandle({ store });
    for (let i = 0; i < GRANTS; i++) {
      const data = { accountId: `player-${i}`, amountCents: '100', currency: 'PLAY', reason: 'After the damage' };
      await handle(wallet, new GrantCredits(data, newMeta(SYSTEM)));
    }
    const more = await readLog(store);
    const [later] = await indexEqualsLog({ store, log: more });
    if (later) return { outcome: 'inconsistent', what: `After more appends: ${later}` };
    if (digestOf(more.slice(0, log.length)) !== digest || more.length !== log.length + GRANTS) {
      return { outcome: 'inconsistent', what: 'More appends changed what was there.' };
    }
    return { outcome: 'served', digest, events: log.length };
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown };
    if (typeof code === 'string') return { outcome: 'reported', code, message: String(message) };
    return { outcome: 'inconsistent', what: `An error without a code: ${String(error)}` };
  } finally {
    await store?.close().catch(() => {});
  }
}
