import { writeFileSync } from 'node:fs';
import { argv, exit } from 'node:process';
import { serveRunners } from '../../gateway/grpc/server.js';
import { LiveMatches } from '../../gateway/live/matches.js';
import { FileArtifacts } from '../../services/adapters/artifacts.js';
import { ProposeMatch } from '../../services/arena/index.js';
import { followMatches } from '../../services/arena/part.js';
import { systemClock as clock, derivedId, newMeta, randomIds, SYSTEM } from '../../services/kernel/index.js';
import { GrantCredits } from '../../services/wallet/index.js';
import { openWriteSide, seatOf } from '../harness/write-side.js';
import { tell } from './children.js';
import type { ArenaLine } from './runner.js';

// Started by the chaos run: a write side with its log, policies, the server for runners, and matches to be played.
const [folder = '', seed = '', matches = '', leaseMs = '', fuel = ''] = argv.slice(2);
const say: (line: ArenaLine) => void = tell;
const TOKEN = 'chaos';
const OWNERS = ['ada', 'bob'] as const;

const { paths, store, engines, load, execute, settled, close } = await openWriteSide(folder);
const artifacts = new FileArtifacts(paths.artifacts);
const config = { playWaitMs: 600_000 };
const work = await followMatches({ engines, clock, config, onRetry: () => {} }, execute, 'runner');
writeFileSync(paths.runnerToken, TOKEN, { mode: 0o600 });
const server = await serveRunners(
  {
    store,
    load,
    artifacts,
    queue: work.queue,
    live: new LiveMatches(),
    clock,
    ids: randomIds,
    leaseMs: Number(leaseMs),
    execute,
    actorOf: (token) => (token === TOKEN ? { id: 'runner', role: 'runner' } : undefined),
    onInternalError: (error) => say({ kind: 'fault', what: String(error) }),
  },
  { host: '127.0.0.1', port: 0 },
);
say({ kind: 'open', address: server.address });
const heard = new Set(['MatchClaimed', 'MatchSettled', 'MatchVoided']);
const tail = store.subscribe({ after: 0 }, async (events) => {
  for (const { type, data } of events) {
    if (heard.has(type)) say({ kind: 'event', type, matchId: (data as { matchId: string }).matchId });
  }
});
await propose();

process.once('SIGTERM', async () => {
  await server.close();
  await work.stop();
  await tail.stop();
  // Payouts follow the outcomes a moment later.
  await settled();
  await close();
  exit(0);
});

/** Ids come from the seed, so an arena that is started again proposes nothing twice. */
async function propose(): Promise<void> {
  const seats: ReturnType<typeof seatOf>[] = [];
  for (const accountId of OWNERS) {
    const grant = { accountId, amountCents: '1000000', currency: 'PLAY', reason: 'chaos' };
    await execute(new GrantCredits(grant, newMeta(SYSTEM, { id: derivedId('chaos', seed, accountId) })));
    // Agents that take their time, so that a kill finds matches in the middle.
    const source = `const act = ({ legal }) => {
      for (let i = 0; i < ${fuel} * 10000; i++);
      return legal[Math.floor(Math.random() * legal.length)];
    }; // ${accountId}`;
    seats.push(seatOf(accountId, await artifacts.put(Buffer.from(source))));
  }
  for (let i = 0; i < Number(matches); i++) {
    const matchId = derivedId('chaos', seed, 'match', i);
    if (await store.head(`match-${matchId}`)) continue;
    const terms = { matchId, game: 'connect-four', stakeCents: '100', currency: 'PLAY', seed: `${seed}/${i}` };
    await execute(new ProposeMatch({ ...terms, seats, rakeBps: 1000 }, newMeta(SYSTEM)));
  }
}
