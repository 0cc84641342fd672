import { spawnSync } from 'node:child_process';
import { chownSync } from 'node:fs';
import { arch, getuid, platform } from 'node:process';
import { type EgressEndpoint, unavailable } from './driver.js';
import { filesInside } from './egress-relay.js';
import { programs, type Runtime } from './runtimes.js';
import { type Launch, options } from './sandbox.js';
import { seccompProgram } from './seccomp.js';

/** What this machine has for building sandboxes. */
export interface Bubblewrap {
  readonly version: string;
  readonly program: string;
  /** Root steps down to a user without any rights before anything starts; an ordinary user is that already. */
  readonly root: boolean;
  readonly seccomp: Buffer;
}

/** Inside, everybody is nobody. */
const insideId = 65_534;
/** Outside, root gives each sandbox an id of its own, from the range that is kept for services without accounts. */
const firstOutsideId = 61_184;
const outsideIds = 4_336;
let sandboxes = 0;

const requestFd = 3;
const replyFd = 4;
const seccompFd = 5;
/** And those that follow, one for each hierarchy of cgroups. */
const entranceFd = seccompFd + 1;

const openFiles = 128;

/** Finds bubblewrap and refuses, with the reason, where a sandbox would be less than it has to be. */
export function findBubblewrap(): Bubblewrap {
  if (platform !== 'linux') throw unavailable('it needs Linux');
  const [program] = programs('bwrap');
  if (program === undefined) throw unavailable('bubblewrap is not installed (no bwrap on the search path)');
  const ask = (option: string): string => spawnSync(program, [option], { encoding: 'utf8' }).stdout ?? '';
  if (!ask('--help').includes('--disable-userns')) {
    throw unavailable('this bubblewrap is too old to switch off nested user namespaces; 0.8 or newer is needed');
  }
  return {
    version: ask('--version').trim().split(' ')[1] ?? 'unknown',
    program,
    root: getuid?.() === 0,
    seccomp: seccompProgram(arch),
  };
}

interface Box extends Runtime {
  /** Files of the cgroups that the sandbox enters before anything else. */
  readonly entrances: readonly string[];
  readonly diskBytes: number;
  readonly endpoint?: EgressEndpoint | undefined;
}

/**
 * How to start a sandbox. A shell without any rights enters the cgroups by descriptors that were opened for it, shuts them,
 * and sets the resource limits. Then it waits for a word, because entering a cgroup can take longer than all the rest, and
 * turns into bubblewrap: nothing ever runs outside its limits, not even for a moment.
 */
export function launch(bubblewrap: Bubblewrap, box: Box): Launch {
  const script = [
    ...box.entrances.map((_, index) => `echo 0 >&${entranceFd + index} && exec ${entranceFd + index}>&- || exit 125`),
    `ulimit -c 0 && ulimit -n ${openFiles} && ulimit -f ${Math.ceil(box.diskBytes / 512)} && ulimit -l 0 || exit 125`,
    `read -r word <&${requestFd} && exec "$@"`,
  ].join('\n');
  const userId = bubblewrap.root ? firstOutsideId + (sandboxes++ % outsideIds) : undefined;
  // The proxy's socket is for this sandbox's user alone.
  if (box.endpoint && userId !== undefined) chownSync(box.endpoint.socket, userId, userId);
  return {
    program: '/bin/sh',
    args: ['-c', script, 'launcher', ...wrap(bubblewrap, box), ...box.command],
    requestFd,
    replyFd,
    printFds: [1, 2],
    userId,
    opened: box.entrances,
    waits: true,
    given: { fd: seccompFd, bytes: box.endpoint ? seccompProgram(arch, 'egress') : bubblewrap.seccomp },
  };
}

function wrap({ program }: Bubblewrap, { environment, visible, diskBytes, endpoint }: Box): string[] {
  return [
    program,
    // Every namespace there is, and none below: neither processes, network, hostname nor IPC of the host exist.
    ...['user', 'pid', 'net', 'ipc', 'uts', 'cgroup'].map((name) => `--unshare-${name}`),
    ...options({ 'disable-userns': true, uid: insideId, gid: insideId, hostname: 'sandbox', 'cap-drop': 'ALL' }),
    ...options({ 'new-session': true, 'die-with-parent': true, clearenv: true }),
    ...Object.entries({ PATH: '/nowhere', HOME: '/tmp', LANG: 'C.UTF-8', TZ: 'UTC', ...environment }).flatMap(
      ([name, value]) => ['--setenv', name, value],
    ),
    ...visible.flatMap((path) => ['--ro-bind', path, path]),
    ...(endpoint ? filesInside(endpoint).flatMap(([from, to]) => ['--ro-bind', from, to]) : []),
    // There is no /proc and no /sys at all: no interpreter needs them to play, and every file there is a question.
    ...['null', 'zero', 'urandom'].flatMap((name) => ['--dev-bind', `/dev/${name}`, `/dev/${name}`]),
    ...options({ size: diskBytes, tmpfs: '/tmp', 'remount-ro': '/', chdir: '/tmp', seccomp: seccompFd }),
    '--',
  ];
}
