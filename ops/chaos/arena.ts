import { writeFileSync } from 'node:fs';
import { argv, exit, stdout } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveRunners } from '../../gateway/grpc/server.js';
import { LiveMatches } from '../../gateway/live/matches.js';
import { FileArtifacts } from '../../services/adapters/artifacts.js';
import { LmdbCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { ProposeMatch, WorkQueue } from '../../services/arena/index.js';
import { followWork } from '../../services/arena/part.js';
import { contexts } from '../../services/index.js';
import {
  type Command,
  systemClock as clock,
  createHandle,
  derivedId,
  Folds,
  invariant,
  newMeta,
  randomIds,
  SYSTEM,
} from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { runPolicy } from '../../services/runtime/policies.js';
import { GrantCredits } from '../../services/wallet/index.js';
import type { ArenaLine } from './runner.js';

// Started by the chaos run: a write side with its log, policies and the door for runners, and matches to be played.
const [folder = '', seed = '', matches = '', leaseMs = '', fuel = ''] = argv.slice(2);
const tell = (line: ArenaLine) => stdout.write(`${JSON.stringify(line)}\n`);
const TOKEN = 'chaos';
const OWNERS = ['ada', 'bob'] as const;

const paths = folderLayout(folder);
const store = await LmdbEventStore.open(paths.log);
const checkpoints = new LmdbCheckpoints(paths.bus);
const artifacts = new FileArtifacts(paths.artifacts);
const folds = new Folds({ store });
const handle = createHandle({ store, folds });
const execute = (command: Command) => {
  const context = contexts.find(({ commands }) => commands.some(({ spec }) => spec.type === command.type));
  invariant(context, `${command.type} belongs to a context.`);
  return handle(context, command);
};
const bus = new EmbeddedBus(store, checkpoints);
const policies = contexts.flatMap((context) => context.policies ?? []);
const consumers = await Promise.all(policies.map((policy) => runPolicy(bus, policy, execute)));
const queue = new WorkQueue(clock);
const work = await followWork({ store, checkpoints, queue, clock, execute, onRetry: () => {} });
writeFileSync(paths.runnerToken, TOKEN, { mode: 0o600 });
const door = await serveRunners(
  {
    store,
    load: folds.load,
    artifacts,
    queue,
    live: new LiveMatches(),
    clock,
    ids: randomIds,
    leaseMs: Number(leaseMs),
    execute,
    actorOf: (token) => (token === TOKEN ? { id: 'runner', role: 'runner' } : undefined),
    onInternalError: (error) => tell({ kind: 'fault', what: String(error) }),
  },
  { host: '127.0.0.1', port: 0 },
);
tell({ kind: 'open', address: door.address });
const told = new Set(['MatchClaimed', 'MatchSettled', 'MatchVoided']);
const tail = store.subscribe({ after: 0 }, async (events) => {
  for (const { type, data } of events) {
    if (told.has(type)) tell({ kind: 'event', type, matchId: (data as { matchId: string }).matchId });
  }
});
await propose();

process.once('SIGTERM', async () => {
  await door.close();
  await work.stop();
  await tail.stop();
  await settled();
  await bus.close();
  await checkpoints.close();
  await store.close();
  exit(0);
});

/** Payouts follow the outcomes a moment later. */
async function settled(): Promise<void> {
  for (let last = -1; last !== (await store.lastPosition()); ) {
    last = await store.lastPosition();
    while (consumers.some((consumer) => consumer.position() < last)) await sleep(1);
  }
}

/** Ids come from the seed, so an arena that is started again proposes nothing twice. */
async function propose(): Promise<void> {
  const seats: { agentId: string; accountId: string; version: number; codeDigest: string; runtime: 'javascript' }[] =
    [];
  for (const accountId of OWNERS) {
    const grant = { accountId, amountCents: '1000000', currency: 'PLAY', reason: 'chaos' };
    await execute(new GrantCredits(grant, newMeta(SYSTEM, { id: derivedId('chaos', seed, accountId) })));
    // Agents that take their time, so that a kill finds matches in the middle.
    const source = `const act = ({ legal }) => {
      for (let i = 0; i < ${fuel} * 10000; i++);
      return legal[Math.floor(Math.random() * legal.length)];
    }; // ${accountId}`;
    const codeDigest = await artifacts.put(Buffer.from(source));
    seats.push({ agentId: `${accountId}.bot`, accountId, version: 1, codeDigest, runtime: 'javascript' });
  }
  for (let i = 0; i < Number(matches); i++) {
    const matchId = derivedId('chaos', seed, 'match', i);
    if (await store.head(`match-${matchId}`)) continue;
    const terms = { matchId, game: 'connect-four', stakeCents: '100', currency: 'PLAY', seed: `${seed}/${i}` };
    await execute(new ProposeMatch({ ...terms, seats, rakeBps: 1000 }, newMeta(SYSTEM)));
  }
}
