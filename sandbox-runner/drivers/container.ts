import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync } from 'node:fs';
import { getuid } from 'node:process';
import { promisify } from 'node:util';
import { AgonError } from '../../services/kernel/index.js';
import type { Limits } from '../limits.js';
import { inherited } from '../paths.js';
import { type EgressEndpoint, unavailable } from './driver.js';
import { filesInside, withRelay } from './egress-relay.js';
import { programs, type Runtime } from './runtimes.js';
import { type Account, type Launch, options, Sandbox } from './sandbox.js';
import { SandboxDriver } from './sandbox-driver.js';

const run = promisify(execFile);

/** Docker or Podman, as found here. */
interface Engine {
  readonly program: string;
  readonly version: string;
  /** gVisor, a kernel of its own between the agent and ours, is used wherever the engine has it. */
  readonly gvisor: boolean;
}

const insideId = 65_534;
/** What an empty interpreter needs; here it cannot be measured before the limit is set. */
const interpreterBytes = 96 * 1024 * 1024;
const pinned = /^[\w.:/-]+@sha256:[0-9a-f]{64}$/;

/** The engine's client needs to find its server, and nothing else of our environment. */
const environment = inherited(['PATH', 'HOME', 'DOCKER_HOST', 'XDG_RUNTIME_DIR']);

/** Finds an engine that answers: a client without a server is none. */
export async function findEngine(): Promise<Engine> {
  const tried: string[] = [];
  for (const program of [...programs('docker'), ...programs('podman')]) {
    try {
      const { stdout } = await run(program, ['info', '--format', '{{json .}}'], { env: environment, timeout: 10_000 });
      const info = JSON.parse(stdout) as { ServerVersion?: string; version?: { Version?: string } };
      const version = info.ServerVersion || info.version?.Version;
      if (version) return { program, version, gvisor: /\brunsc\b/.test(stdout) };
      tried.push(`${program} has no server`);
    } catch {
      tried.push(`${program} does not answer`);
    }
  }
  const reason = tried.length > 0 ? tried.join('; ') : 'neither docker nor podman is installed';
  throw unavailable(reason, 'The container driver cannot run here');
}

/** The command line of one sandbox. */
export function containerLaunch(
  engine: Engine,
  image: string,
  name: string,
  plain: Runtime,
  limits: Limits,
  endpoint?: EgressEndpoint,
): Launch {
  const runtime = endpoint ? withRelay(plain) : plain;
  if (!pinned.test(image)) {
    const message = `${image} is not named by its digest (name@sha256:...).`;
    throw new AgonError('SANDBOX.IMAGE_NOT_PINNED', message, { image });
  }
  const memory = String(limits.memoryBytes + interpreterBytes);
  // A container has three descriptors: the protocol takes the first two, and what is printed goes to the third.
  const entry = 'exec 3<&0 4>&1 1>&2 0</dev/null; exec "$@"';
  return {
    program: engine.program,
    environment,
    args: [
      'run',
      ...options({ rm: true, interactive: true, name, pull: 'never', 'log-driver': 'none' }),
      ...(engine.gvisor ? options({ runtime: 'runsc' }) : []),
      ...options({ network: 'none', ipc: 'none', hostname: 'sandbox' }),
      ...options({ user: `${insideId}:${insideId}`, 'read-only': true }),
      ...options({ tmpfs: `/tmp:rw,nosuid,nodev,size=${limits.diskBytes},mode=1777`, workdir: '/tmp' }),
      ...options({ 'cap-drop': 'ALL', 'security-opt': 'no-new-privileges' }),
      // Egress is no network either: two files, one of them a socket, and the loopback device that is always there.
      ...(endpoint ? filesInside(endpoint) : []).flatMap(([from, to]) =>
        options({ mount: `type=bind,source=${from},target=${to},readonly` }),
      ),
      ...options({ memory, 'memory-swap': memory, 'pids-limit': limits.tasks, cpus: 1 }),
      ...['nofile=128', 'core=0', `fsize=${limits.diskBytes}`].flatMap((ulimit) => options({ ulimit })),
      ...Object.entries(runtime.environment).flatMap(([key, value]) => options({ env: `${key}=${value}` })),
      ...options({ entrypoint: '/bin/sh' }),
      image,
      '-c',
      entry,
      'sandbox',
      ...runtime.command,
    ],
    requestFd: 0,
    replyFd: 1,
    printFds: [2],
  };
}

/** The engine holds the limits and tells little, so a container pays for time on the wall. */
function containerAccount(engine: Engine, name: string): Account {
  return {
    clock: 'wall',
    limit: () => {},
    spentMs: () => performance.now(),
    memoryBytes: () => 0,
    peakMemoryBytes: () => 0,
    oomKills: () => 0,
    async destroy() {
      // A container that has ended by itself is gone already.
      await run(engine.program, ['rm', '--force', '--volumes', name], { env: environment }).catch(() => {});
    },
  };
}

/**
 * Runs agents in containers of an image that holds their interpreter.
 *
 * @example await ContainerDriver.open('python@sha256:...', { ...await runtimeFor('python'), command: ['python3', ...] });
 */
export class ContainerDriver extends SandboxDriver {
  static async open(image: string, runtime: Runtime, found?: Engine): Promise<ContainerDriver> {
    const engine = found ?? (await findEngine());
    return new ContainerDriver({
      name: `container/${runtime.name}`,
      version: `${image}, engine ${engine.version}${engine.gvisor ? ', gVisor' : ''}`,
      keyOf: ({ memoryBytes, tasks, diskBytes }) => [memoryBytes, tasks, diskBytes].join(),
      launchers: 0,
      prepare(limits, endpoint) {
        const name = `agon-${randomBytes(8).toString('hex')}`;
        const started = containerLaunch(engine, image, name, runtime, limits, endpoint);
        // The socket is for its user alone, and inside everybody is nobody.
        if (endpoint && getuid?.() === 0) chownSync(endpoint.socket, insideId, insideId);
        return new Sandbox(started, containerAccount(engine, name));
      },
    }).prove();
  }
}
