import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { env, kill, platform } from 'node:process';

const LOOK_MS = 1_000;

interface Process {
  readonly parent: number;
  readonly command: string;
}

/**
 * Calls back once when the npm or npx that started this process has ended. npm puts a shell between itself and us that
 * passes no signal on, so that we would hear nothing of it. Whoever was started in any other way, by a user's shell or a
 * service manager, may outlive its parent.
 */
export function whenNpmEnds(ended: () => void): void {
  if (env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const launcher = npmAbove(parent, processOf);
  if (launcher === undefined) return;
  const timer = setInterval(() => {
    if (process.ppid === parent && isUnder(parent, launcher)) return;
    clearInterval(timer);
    ended();
  }, LOOK_MS);
  timer.unref();
}

/** The npm that is the parent, or the parent of the shell that is the parent. */
export function npmAbove(parent: number, look: (pid: number) => Process | undefined): number | undefined {
  const first = look(parent);
  if (first === undefined || isNpm(first)) return first && parent;
  if (!/^(\S*\/)?(ba|da|z|k)?sh -c /.test(first.command)) return undefined;
  const second = look(first.parent);
  return second && isNpm(second) ? first.parent : undefined;
}

/** npm names itself by what it was asked for; where that cannot be seen, it is a script of this name. */
const isNpm = ({ command }: Process): boolean => /^npm |\/np[mx](-cli\.js)?( |$)/.test(command);

/** Whether the launcher is there still: it is our parent, or our parent is its child. */
function isUnder(parent: number, launcher: number): boolean {
  if (parent === launcher) return true;
  // What has ended and was not waited for yet still has its number, but no children.
  if (platform === 'linux') return processOf(parent)?.parent === launcher;
  try {
    return kill(launcher, 0);
  } catch {
    return false;
  }
}

function processOf(pid: number): Process | undefined {
  try {
    if (platform === 'linux') {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      return { parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]), command };
    }
    const { stdout } = spawnSync('ps', ['-o', 'ppid=,args=', '-p', `${pid}`], { encoding: 'utf8' });
    const [, parent, command] = /^\s*(\d+)\s+(.*)/.exec(stdout) ?? [];
    return parent === undefined ? undefined : { parent: Number(parent), command: command ?? '' };
  } catch {
    return undefined;
  }
}
