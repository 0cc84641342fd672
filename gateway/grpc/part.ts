import type { Progress } from '../../proto/gen/agon/runner/v1/runner.js';
import { type ArenaPort, keyIn } from '../../sandbox-runner/index.js';
import { type RunnersArena, remoteArena } from '../../sandbox-runner/part.js';
import { type MatchQueue, matchQueue, untilHeard } from '../../services/arena/part.js';
import { type Command, canonical, type Handled, type Load, type SigningKey } from '../../services/kernel/index.js';
import { claimIdsOf } from '../../services/runtime/clock.js';
import type { Host } from '../../services/runtime/host.js';
import { definePart } from '../../services/runtime/part.js';
import { serveWhileLeader } from '../../services/runtime/serve.js';
import { writeSide } from '../../services/runtime/write-side.js';
import { tokensOf } from '../auth/machine-tokens.js';
import type { LiveMatches } from '../live/matches.js';
import { live } from '../live/part.js';
import { watchGrpc } from '../observe.js';
import { type RunnerServicePorts, registerRunner, registrationText, runnerServiceOf } from './runner-service.js';
import { serveRunners } from './server.js';

const LOCAL_GRACE_MS = 2_000;
/** While one match waits for the log, a cell plays another. */
const IN_HAND_A_CELL = 8;

/** The server for runners on other machines. */
export const runnerService = definePart({
  name: 'runner service',
  needs: { writeSide, matchQueue, live },
  start: async (needs, host) => {
    const { config, engines, onInternalError } = host;
    const { actorOf } = tokensOf(config, await engines.folder());
    const ports = { ...(await runnerPorts(host, needs)), actorOf, onInternalError };
    const { onSeen: observe } = await host.telemetry();
    const interceptors = [watchGrpc({ ids: host.ids, observe })];
    const running = await serveWhileLeader(host, 'runner service', needs.matchQueue, () =>
      serveRunners(ports, { host: config.host, port: config.grpcPort ?? 0, interceptors }),
    );
    host.addresses.grpc = running.value.address;
    return running;
  },
});

/** The arena for a runner in the same process: the same service without the wire. */
export const localArena = definePart<
  RunnersArena,
  { writeSide: typeof writeSide; matchQueue: typeof matchQueue; live: typeof live }
>({
  name: remoteArena.name,
  needs: { writeSide, matchQueue, live },
  start: async (needs, host) => {
    await untilHeard(host, needs.matchQueue);
    const { runnerKey } = (await host.engines.folder()).paths;
    const claimIds = claimIdsOf(host.config);
    const port = await localRunnerPort(await runnerPorts(host, needs), keyIn(runnerKey), { claimIds });
    const inHandMax = (cells: number) => cells * IN_HAND_A_CELL;
    return { value: { port, inHandMax, graceMs: LOCAL_GRACE_MS, holds: () => {} } };
  },
});

export interface RunnerNeeds {
  readonly writeSide: { readonly load: Load; execute(command: Command): Promise<Handled> };
  readonly matchQueue: MatchQueue;
  readonly live: LiveMatches;
}

/** What runners are served from. */
export async function runnerPorts(
  host: Host,
  { writeSide: { execute, load }, matchQueue, live }: RunnerNeeds,
): Promise<RunnerServicePorts> {
  const { engines, clock, ids, config } = host;
  const [store, artifacts] = await Promise.all([engines.log(), engines.artifacts()]);
  return { store, load, artifacts, queue: matchQueue.queue, live, clock, ids, leaseMs: config.leaseMs, execute };
}

/** The same for a runner in this process, without the wire. */
export async function localRunnerPort(
  ports: RunnerServicePorts,
  key: SigningKey,
  { table = false, claimIds = () => ports.ids() }: LocalOptions = {},
): Promise<ArenaPort> {
  const { publicKey } = key;
  const time = ports.clock();
  const signature = key.sign(registrationText(publicKey, time));
  const runnerId = await registerRunner(ports, { publicKey, time, signature, holding: [] });
  const service = runnerServiceOf(ports, runnerId, table);
  return {
    ...service,
    claim: (matchId) => service.claim(matchId, claimIds(matchId)),
    progress: ({ matchId, attempt }, what) => {
      const wire: Progress['what'] =
        what.kind === 'turn'
          ? { $case: 'turnJson', turnJson: canonical(what.turn) }
          : { $case: 'log', log: { seat: what.seat, text: what.text } };
      service.progress({ matchId, attempt }, wire);
    },
  };
}

interface LocalOptions {
  /** Whether it takes matches with agents from outside. */
  readonly table?: boolean;
  readonly claimIds?: ((matchId: string) => string) | undefined;
}
