import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../paths.js';
import { unavailable } from './driver.js';

const run = promisify(execFile);

/** What is visible inside a process sandbox, and what is started there. */
export interface Runtime {
  /** The part of the driver's name after `process/`. */
  readonly name: string;
  readonly version: string;
  /** Started without any agent's code; it says `ready` on descriptor 4, then answers what comes on descriptor 3. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Files and folders of the host, shown read-only at the same place. Nothing else of the host is there. */
  readonly visible: readonly string[];
}

export type Language = 'python' | 'node';

/** The files called `name` on the search path, by their real names. */
export function programs(name: string): string[] {
  const found = (process.env.PATH ?? '/usr/bin:/bin')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .filter((file) => {
      try {
        accessSync(file, constants.X_OK);
        return statSync(file).isFile();
      } catch {
        return false;
      }
    });
  return [...new Set(found.map((file) => realpathSync(file)))];
}

/** A sandbox runs as a user with no rights of its own, so what it shows has to be open to everybody. */
export function openToAll(path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    const { mode } = statSync(at);
    if ((mode & 0o001) === 0 && !(at === path && statSync(at).isFile() && (mode & 0o004) !== 0)) return false;
    if (at === '/') return true;
  }
}

/** The shared libraries of these files, as the loader finds them. */
async function libraries(files: readonly string[]): Promise<string[]> {
  const { stdout } = await run('ldd', [...files], { maxBuffer: 16 * 1024 * 1024 }).catch(
    // ldd fails when one of many is no program, and still lists the others.
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  );
  return [...new Set([...stdout.matchAll(/(?:=> |^\t)(\/\S+) \(0x/gm)].map(([, path]) => path ?? ''))];
}

const shim = (file: string): string => readFileSync(join(root, 'sandbox-runner', 'drivers', 'shims', file), 'utf8');

/** A name in PATH may be a wrapper that picks one of several; the interpreter itself knows where it lives. */
async function findPython(): Promise<{ file: string; version: string; folders: string[] }> {
  const question =
    'import json,sys,sysconfig;p=sysconfig.get_paths();' +
    'print(json.dumps([sys.executable,sys.version.split()[0],p["stdlib"],p["platstdlib"]]))';
  const closed: string[] = [];
  for (const candidate of programs('python3')) {
    const asked = await run(candidate, ['-I', '-S', '-c', question]).catch(() => undefined);
    if (asked === undefined) continue;
    const [executable, version, ...folders] = JSON.parse(asked.stdout) as [string, string, ...string[]];
    const file = realpathSync(executable);
    const needed = [...new Set(folders)].filter((folder) => existsSync(folder));
    if ([file, ...needed].every(openToAll)) return { file, version, folders: needed };
    closed.push(file);
  }
  const reason = closed.length > 0 ? `${closed.join(' and ')} cannot be read by every user` : 'there is no python3';
  throw unavailable(reason);
}

/** No user's and no site's packages, no compiled files beside sources, no buffering of what is printed. */
const pythonFlags = ['-s', '-S', '-B', '-u'] as const;

/** A line of Python that runs this program without compiling it, which would take a millisecond of every start. */
async function compiled(python: string, program: string): Promise<string> {
  const compile = 'import marshal,sys;print(marshal.dumps(compile(sys.argv[1],"shim","exec")))';
  const { stdout } = await run(python, [...pythonFlags, '-c', compile, program]);
  return `import marshal\nexec(marshal.loads(${stdout.trim()}))`;
}

/** Modules for terminals and for the directory service of a network. No sandbox has either, and their libraries are many. */
const pointless = /^(_curses|_curses_panel|readline|nis)\./;

async function python(): Promise<Runtime> {
  const { file, version, folders } = await findPython();
  const extensions = folders
    .map((folder) => join(folder, 'lib-dynload'))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter((file) => !pointless.test(basename(file)));
  return {
    name: 'python',
    version,
    command: [file, ...pythonFlags, '-c', await compiled(file, shim('python.py'))],
    environment: { PYTHONHASHSEED: '0' },
    visible: [file, ...folders, ...(await libraries([file, ...extensions]))],
  };
}

const node = (): Promise<Runtime> =>
  executable('node', process.versions.node, [process.execPath, '--no-warnings', '-e', shim('node.js')]);

/** A runtime for any executable that speaks the protocol of the process driver itself. */
export async function executable(
  name: string,
  version: string,
  command: readonly [string, ...string[]],
  folders: readonly string[] = [],
): Promise<Runtime> {
  const [file, ...args] = command;
  const real = realpathSync(file);
  const closed = [real, ...folders].filter((path) => !openToAll(path));
  if (closed.length > 0) throw unavailable(`${closed.join(' and ')} cannot be read by every user`);
  const visible = [real, ...folders, ...(await libraries([real]))];
  return { name, version, command: [real, ...args], environment: {}, visible };
}

export const runtimeFor = (language: Language): Promise<Runtime> => (language === 'python' ? python() : node());
