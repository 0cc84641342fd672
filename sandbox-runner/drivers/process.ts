import { readFileSync } from 'node:fs';
import { asAgonError } from '../../services/kernel/index.js';
import { findBubblewrap, launch } from './bubblewrap.js';
import { findCgroups } from './cgroup.js';
import { withRelay } from './egress-relay.js';
import { type Language, type Runtime, runtimeFor } from './runtimes.js';
import { Sandbox } from './sandbox.js';
import { SandboxDriver } from './sandbox-driver.js';

/** Raised when a shim or the walls around it change what an agent can see or do. */
const generation = 2;

/** Enough that a sandbox mostly finds one in wait, also when several are started at once. */
const launchers = 4;

let groups = 0;

const machine = () => ({
  bubblewrap: findBubblewrap(),
  cgroups: findCgroups(readFileSync('/proc/mounts', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8')),
});

/** Why this machine cannot hold process sandboxes, as far as a look can tell; undefined when it can. */
export function whyNoProcessSandboxes(): string | undefined {
  try {
    machine();
    return undefined;
  } catch (error) {
    return asAgonError(error).message;
  }
}

/**
 * Runs agents as processes of this machine, in sandboxes of bubblewrap, seccomp and cgroups. Where one of these cannot
 * hold its part, `open` refuses with SANDBOX.DRIVER_UNAVAILABLE and the reason, because half a sandbox is none.
 */
export class ProcessDriver extends SandboxDriver {
  static async open(language: Language | Runtime): Promise<ProcessDriver> {
    const { bubblewrap, cgroups } = machine();
    const runtime = typeof language === 'string' ? await runtimeFor(language) : language;
    const parts = [
      `${runtime.name} ${runtime.version}`,
      `bubblewrap ${bubblewrap.version}`,
      `cgroup ${cgroups.version}`,
      `sandbox ${generation}`,
    ];
    return new ProcessDriver({
      name: `process/${runtime.name}`,
      version: parts.join(', '),
      keyOf: ({ diskBytes }) => String(diskBytes),
      launchers,
      prepare({ diskBytes }, endpoint) {
        const inside = endpoint ? withRelay(runtime) : runtime;
        const cgroup = cgroups.create(`${process.pid}-${++groups}`);
        return new Sandbox(launch(bubblewrap, { ...inside, entrances: cgroup.entrances, diskBytes, endpoint }), cgroup);
      },
    }).prove();
  }
}
