import { spawn } from 'node:child_process';
import { join } from 'node:path';
import process, { execPath } from 'node:process';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { compiled } from '../../services/runtime/package.js';
import { withFolder } from '../bench/folders.js';
import { checks, digestOf, readLog, type Scene } from './checks.js';
import { createDatabase } from './databases.js';
import { lineReader, type Witnessed } from './protocol.js';
import { copyOf, damages, inflict, type Reader } from './torn.js';
import { between, type Random, seededRandom } from './workload.js';

const KILLS = 3;
/** Most writers die young, where opening and first writes meet; some live long enough for the index to be written. */
const ACKNOWLEDGEMENTS_MAX = { short: 120, long: 800 };
const LONG_LIVES = 0.05;
const DELAY_MS_MAX = 4;
const START_MS = 30_000;
const FAULTS_SHOWN = 3;

export interface SeedResult {
  readonly seed: number;
  readonly failures: readonly string[];
  readonly kills: number;
  readonly acknowledged: number;
  readonly events: number;
  readonly torn: { readonly reported: number; readonly harmless: number };
}

/** One seed: kill and reopen on the same folder a few times, then damage copies of what is left. */
export async function runSeed(seed: number, reader: Reader, serverUrl: string | undefined): Promise<SeedResult> {
  const random = seededRandom('chaos', seed);
  const failures: string[] = [];
  const witnessed: Witnessed = { sent: new Map(), acknowledged: new Map() };
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
  }).catch((error: unknown) => failures.push(`It could not be carried out: ${String(error)}`));
  return { seed, failures, kills, acknowledged: witnessed.acknowledged.size, events, torn };
}

/** Lets a writer run until it has been acknowledged a seeded number of times, and a seeded moment longer. */
async function writeAndKill(args: readonly string[], random: Random, witnessed: Witnessed): Promise<string> {
  const killAfter = between(random, 0, ACKNOWLEDGEMENTS_MAX[random() < LONG_LIVES ? 'long' : 'short']);
  const delayMs = random() * DELAY_MS_MAX;
  const child = spawn(execPath, [compiled(import.meta.url, './writer.js'), ...args], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const started = setTimeout(() => child.kill('SIGKILL'), START_MS);
  const killWithUs = () => child.kill('SIGKILL');
  process.prependListener('exit', killWithUs);
  let count = 0;
  const read = lineReader((line) => {
    if (line.kind === 'sent') witnessed.sent.set(line.sent.meta.id, line.sent);
    else witnessed.acknowledged.set(line.acknowledged.commandId, line.acknowledged);
    count += line.kind === 'acknowledged' ? 1 : 0;
    if (count === killAfter && !child.killed) void sleep(delayMs).then(() => child.kill('SIGKILL'));
  });
  (child.stdio[3] as Readable).on('data', read);
  const [, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.once('close', (...ended) => resolve(ended));
  });
  clearTimeout(started);
  process.off('exit', killWithUs);
  if (signal !== 'SIGKILL') return `the writer ended by itself: ${errors.slice(0, 500)}`;
  return count < killAfter ? `the writer stood still after ${count} acknowledgements.` : '';
}

async function check(
  scene: Omit<Scene, 'store' | 'log'>,
): Promise<{ events: number; digest: string; faults: string[] }> {
  const store = await LmdbEventStore.open(scene.folder);
  try {
    const log = await readLog(store);
    const faults: string[] = [];
    for (const holds of checks) {
      const found = await holds({ ...scene, store, log }).catch((error: unknown) => [
        `${holds.name}: ${String(error)}`,
      ]);
      faults.push(...found.slice(0, FAULTS_SHOWN));
    }
    return { events: log.length, digest: digestOf(await readLog(store)), faults };
  } finally {
    await store.close();
  }
}

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
