import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { env, stderr, stdout } from 'node:process';
import {
  Cells,
  Egress,
  GrpcArena,
  keyIn,
  type Runner,
  RunnerLogs,
  readPolicy,
  serveRunner,
  startRunner,
} from '../../sandbox-runner/index.js';
import { AgonError, randomIds, runnerIdOf, systemClock } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { EXIT, type OutputOptions, print } from './output.js';
import { untilSignal } from './signals.js';

interface RunnerFlags extends OutputOptions {
  /** host:port of the arena's endpoint for runners. */
  readonly arena: string;
  readonly concurrency: number;
  readonly host: string;
  readonly port: number;
  readonly keyDir: string;
  readonly tokenFile?: string;
  readonly graceMs: number;
  /** A policy file: which agents may reach what. */
  readonly egress?: string;
}

/** Plays matches of an arena until a signal comes, then ends what it has in hand or hands it back. */
export async function runRunner(dataDir: string, flags: RunnerFlags): Promise<number> {
  const { concurrency, json = false } = flags;
  const { done: signalled } = untilSignal();
  const key = keyIn(join(flags.keyDir, 'runner.key'));
  const runnerId = runnerIdOf(key.publicKey);
  const clock = systemClock;
  const logs = new RunnerLogs(clock);
  let draining = false;
  let holding: Runner['holding'] = () => [];
  // A policy that cannot be used is told before anything is claimed.
  const egress = flags.egress === undefined ? undefined : new Egress(readPolicy(flags.egress, [], env));
  const arena = new GrpcArena({
    address: flags.arena,
    token: tokenOf(dataDir, flags),
    key,
    clock,
    ids: randomIds,
    holding: () => holding(),
  });
  await arena.connect();
  // As many cells as matches, so that a match that was claimed never waits for one.
  const pool = new Cells({ size: concurrency, queueLength: concurrency * 2 }, egress);
  const say = (text: string, matchId: string) => {
    logs.say(text, matchId);
    if (!json && matchId === '') stderr.write(`${text}\n`);
  };
  const runner = startRunner({ arena, key, pool, concurrency, live: true, say });
  holding = runner.holding;
  const { host, port } = flags;
  const serving = () => !draining;
  try {
    const server = await serveRunner({ host, port, pool, logs, executionsMax: concurrency, serving });
    const ready = { runnerId, publicKey: key.publicKey, arena: flags.arena, address: server.address, concurrency };
    print({ json }, ready, `Runner ${runnerId} plays ${concurrency} matches at a time; gRPC at ${server.address}.`);
    await Promise.race([signalled, runner.done]);
    draining = true;
    if (!json) stdout.write('draining\n');
    await runner.drain(flags.graceMs);
    await server.close();
    return EXIT.ok;
  } finally {
    await runner.drain(0);
    arena.close();
  }
}

function tokenOf(dataDir: string, { tokenFile }: RunnerFlags): string {
  if (tokenFile === undefined && env.AGON_TOKEN) return env.AGON_TOKEN;
  const path = tokenFile ?? folderLayout(dataDir).runnerToken;
  if (existsSync(path)) return readFileSync(path, 'utf8').trim();
  throw new AgonError(
    'RUNNERS.NO_TOKEN',
    `There is no runner token at ${path}. Copy runner.token from the arena's data folder and name it with --token-file.`,
  );
}
