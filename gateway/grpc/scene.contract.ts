import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileArtifacts } from '../../services/adapters/artifacts.js';
import { MemoryCheckpoints } from '../../services/adapters/bus/checkpoints.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { type ArenaEvent, ProposeMatch } from '../../services/arena/index.js';
import { followMatches } from '../../services/arena/part.js';
import { contexts } from '../../services/index.js';
import {
  type Actor,
  type Checkpoints,
  type Command,
  createHandle,
  derivedId,
  Folds,
  type Handled,
  invariant,
  manualClock,
  newMeta,
  randomIds,
  SYSTEM,
} from '../../services/kernel/index.js';
import { LiveMatches } from '../live/matches.js';
import type { GrpcPorts } from './server.js';

export const RUNNER_TOKEN = 'the-runner-token';
export const LEASE_MS = 30_000;
export const SOURCES = ['export const act = ({ legal }) => legal[0]', 'export const act = (o) => o.legal.at(-1)'];

/** Where nobody buys plans, so that nobody counts and no database is asked. */
export const withoutPlans = {
  payments: undefined,
  houseAccounts: [],
  database: undefined as never,
  quotas: undefined as never,
  checkSource: async () => ({ ok: true }) as const,
  sourceBytesMax: 0,
};

/** A write side in memory with its queue, as an arena puts it together, and a clock that stands still. */
export async function openScene() {
  const folder = mkdtempSync(join(tmpdir(), 'agon-service-'));
  const store = new MemoryEventStore();
  const clock = manualClock('2026-03-01T12:00:00.000Z');
  const artifacts = new FileArtifacts(folder);
  const folds = new Folds({ store });
  const handle = createHandle({ store, folds });
  const execute = (command: Command): Promise<Handled> => {
    const context = contexts.find(({ commands }) => commands.some(({ spec }) => spec.type === command.type));
    invariant(context, `${command.type} belongs to a context.`);
    return handle(context, command);
  };
  const errors: unknown[] = [];
  const checkpoints = new MemoryCheckpoints();
  const onRetry = (_group: string, error: unknown) => void errors.push(error);
  const engines = {
    bus: async () => (behind: Checkpoints) => new EmbeddedBus(store, behind, onRetry),
    checkpoints: async () => checkpoints,
  };
  const config = { playWaitMs: 600_000 };
  const work = await followMatches({ engines, clock, config, onRetry }, execute, 'runner');
  const { queue } = work;
  const live = new LiveMatches();
  const runner: Actor = { id: 'runner', role: 'runner' };
  const ports: GrpcPorts = {
    store,
    load: folds.load,
    artifacts,
    queue,
    live,
    clock,
    ids: randomIds,
    leaseMs: LEASE_MS,
    execute,
    actorOf: (token) => (token === RUNNER_TOKEN ? runner : undefined),
    onInternalError: (error) => void errors.push(error),
  };
  const codeDigests = await Promise.all(SOURCES.map((source) => artifacts.put(Buffer.from(source))));

  let proposed = 0;
  const propose = async (): Promise<string> => {
    const matchId = derivedId('match', proposed++);
    const seats = codeDigests.map((codeDigest, seat) => {
      const accountId = `owner-${seat}`;
      return { agentId: `${accountId}.bot`, accountId, version: 1, codeDigest, runtime: 'javascript' as const };
    });
    const terms = { matchId, game: 'tic-tac-toe', stakeCents: '0', currency: 'PLAY', seed: 's', seats, rakeBps: 1000 };
    await execute(new ProposeMatch(terms, newMeta(SYSTEM, { clock })));
    return matchId;
  };
  const eventsOf = async (matchId: string) =>
    (await store.readStream(`match-${matchId}`)) as unknown as readonly ArenaEvent[];
  const typesOf = async (matchId: string) => (await eventsOf(matchId)).map((event) => event.type);
  const close = async () => {
    await work.stop();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { store, clock, queue, ports, errors, codeDigests, execute, propose, eventsOf, typesOf, close };
}

export type Scene = Awaited<ReturnType<typeof openScene>>;
