import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { env, execPath, geteuid } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { whyNoProcessSandboxes } from '../../sandbox-runner/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { whyNoChdb } from '../engines/chdb.js';
import { temporaryFolder } from './agon.contract.js';
import { type Block, changed, changesOf, guides, isRun, type Page } from './guides.js';

const READY_MS = 240_000;
const STOP_MS = 60_000;
const OUTPUT_LINES_SHOWN = 40;

/** What a shell of a page begins with: where the one before it ended; and it leaves behind the line that failed. */
const PRELUDE = `
unset BASH_ENV
[ -f "$GUIDE/env" ] && . "$GUIDE/env"
[ -f "$GUIDE/cwd" ] && cd "$(cat "$GUIDE/cwd")"
trap 'echo "$LINENO" > "$GUIDE/failed"' ERR
trap 'export -p > "$GUIDE/env"; pwd > "$GUIDE/cwd"' EXIT
`;

/** Asks the arena as GraphiQL does with the operator's token. */
const ASK = `
const headers = { 'content-type': 'application/json' };
headers.authorization = 'Bearer ' + require('node:fs').readFileSync('.agon/operator.token', 'utf8');
const body = JSON.stringify({ query: process.argv[1] });
fetch('http://127.0.0.1:4600/graphql', { method: 'POST', headers, body }).then((r) => r.json()).then((said) => {
  console.log(JSON.stringify(said, null, 2));
  process.exit(said.errors ? 1 : 0);
});
`;

/** The settings of whoever runs the tests that reach a registry; nothing else of theirs. */
const INHERITED = /^(LANG|TZ|.*_proxy|PIP_\w+|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+|PYENV_\w+|JAVA_HOME)$/i;
const paths = (env.PATH ?? '').split(delimiter).filter((path) => !/node_modules/.test(path));

interface Running {
  readonly child: ChildProcess;
  readonly block: Pick<Block, 'page' | 'line' | 'text'>;
  readonly log: string;
}

/** Page by page a network of its own, where the ports that the pages name are free; undefined where nobody may make one. */
async function ownNetwork(): Promise<{ enter: readonly string[]; close(): void } | undefined> {
  const user = geteuid?.() === 0 ? [] : ['--user', '--map-current-user', '--keep-caps'];
  // It lasts as long as its input: also when this process is killed, nothing stays behind.
  const script = 'ip link set lo up && echo up && exec cat';
  const holder = spawn('unshare', [...user, '--net', 'sh', '-c', script], { stdio: ['pipe', 'pipe', 'ignore'] });
  const up = new Promise<boolean>((resolve) => {
    holder.once('error', () => resolve(false)).once('close', () => resolve(false));
    holder.stdout.once('data', () => resolve(true));
  });
  if (!(await up)) return undefined;
  const as = user.length === 0 ? [] : ['--user', '--preserve-credentials'];
  return { enter: ['nsenter', '--target', `${holder.pid}`, ...as, '--net', '--'], close: () => holder.stdin.end() };
}

/** In the network of everybody the ports of a page may be somebody's. */
async function assertFree({ path, blocks }: Page): Promise<void> {
  const named = blocks.flatMap(({ text }) => [...text.matchAll(/(?:127\.0\.0\.1:|localhost:|-port )(\d{4,5})\b/g)]);
  for (const port of new Set(['4600', ...named.map(([, port]) => `${port}`)])) {
    const server = createServer().listen(Number(port), '127.0.0.1');
    const free = await Promise.race([
      once(server, 'listening').then(() => true),
      once(server, 'error').then(() => false),
    ]).catch(() => false);
    server.close();
    if (!free) throw new Error(`${path} is for port ${port}, which somebody listens on. Stop that, and try again.`);
  }
}

/** A page's reader: a folder with the project, a shell, and other terminals for what runs on. */
class Terminal {
  private running: Running[] = [];
  private shells = 0;

  private constructor(
    readonly folder: string,
    private readonly state: string,
    private readonly network: { enter: readonly string[]; close(): void } | undefined,
  ) {}

  /** Beside the folder are a home and what the shells leave to each other. */
  static async open(page: Page, folder: string): Promise<Terminal> {
    const state = `${folder}.shell`;
    mkdirSync(join(state, 'home'), { recursive: true });
    writeFileSync(join(state, 'prelude'), PRELUDE);
    const network = await ownNetwork();
    if (!network) await assertFree(page);
    const terminal = new Terminal(folder, state, network);
    if (page.besides) await terminal.runBeside({ page: page.path, line: 1, text: page.besides }, 'is ready');
    return terminal;
  }

  /** Does what the block says, and throws with where and what if that does not end as it should. */
  async do(block: Block): Promise<void> {
    const { marks, language, text } = block;
    if (marks.after !== undefined) await this.interrupt();
    const here = this.whereItIs();
    let script = text;
    if (marks.file !== undefined) {
      mkdirSync(dirname(join(here, marks.file)), { recursive: true });
      writeFileSync(join(here, marks.file), text);
      script = marks.run ?? '';
    } else if (language === 'diff') return this.change(block);
    else if (language === 'graphql') script = `"$NODE" -e "$ASK" -- "$(cat <<'EOF'\n${text}EOF\n)"`;
    else if (language === 'sql') script = `npx agon analytics query "$(cat <<'EOF'\n${text}EOF\n)"`;
    if (script === '') return;
    if (marks.background !== undefined) return this.runBeside({ ...block, text: script }, marks.background);
    return this.runHere(block, script);
  }

  /** Ends everything, and says what did not end well. */
  async close(): Promise<void> {
    try {
      await this.interrupt();
    } finally {
      for (const { child } of this.running) kill(child, 'SIGKILL');
      this.network?.close();
    }
  }

  private change(block: Block): void {
    for (const [file, changes] of changesOf(block)) {
      const path = join(this.folder, file);
      try {
        writeFileSync(path, changes.reduce(changed, readFileSync(path, 'utf8')));
      } catch (error) {
        throw new Error(`${block.page}:${block.line}: ${file}: ${(error as Error).message}`);
      }
    }
  }

  private async runHere(block: Block, script: string): Promise<void> {
    const log = this.nextLog();
    rmSync(join(this.state, 'failed'), { force: true });
    const child = this.shell(script, log, this.state, block.marks);
    const [code] = (await once(child, 'close')) as [number | null];
    const wanted = Number(block.marks.exits ?? 0);
    if (code === wanted) return assertSaid(block, script, log);
    const failed = join(this.state, 'failed');
    const at = existsSync(failed) && script === block.text ? Number(readFileSync(failed, 'utf8')) : 1;
    throw new Error(told(block, at, script, `ended with ${code}, not ${wanted}`, log));
  }

  private async runBeside(block: Running['block'], ready: string): Promise<void> {
    const log = this.nextLog();
    // What it exports or where it goes stays in it.
    const state = `${log}.shell`;
    mkdirSync(state);
    for (const name of ['env', 'cwd'].filter((each) => existsSync(join(this.state, each)))) {
      cpSync(join(this.state, name), join(state, name));
    }
    const child = this.shell(block.text, log, state, {});
    this.running.push({ child, block, log });
    const says = ready || 'is ready';
    for (let waitedMs = 0; !readFileSync(log, 'utf8').includes(says); waitedMs += 100) {
      const gone = child.exitCode !== null ? `ended with ${child.exitCode}` : undefined;
      if (gone || waitedMs > READY_MS) {
        throw new Error(told(block, 1, block.text, `${gone ?? `took ${READY_MS} ms`} before it said "${says}"`, log));
      }
      await sleep(100);
    }
  }

  /** Ctrl-C in every other terminal, the last one first. */
  private async interrupt(): Promise<void> {
    const all = this.running.reverse();
    this.running = [];
    for (const { child, block, log } of all) {
      const ended = child.exitCode === null ? once(child, 'close') : Promise.resolve();
      kill(child, 'SIGINT');
      const late = await Promise.race([ended.then(() => false), sleep(STOP_MS, true, { ref: false })]);
      if (late) kill(child, 'SIGKILL');
      // A shell that was interrupted says so; what it ran says how it ended.
      if (late || ![0, 130].includes(child.exitCode ?? 130)) {
        throw new Error(told(block, 1, block.text, `did not end well by Ctrl-C (${child.exitCode})`, log));
      }
    }
  }

  private shell(script: string, log: string, state: string, { network, types }: Block['marks']): ChildProcess {
    mkdirSync(state, { recursive: true });
    const file = `${log}.sh`;
    writeFileSync(file, script);
    const output = openSync(log, 'a');
    const command = ['bash', '-e', '-o', 'pipefail', file];
    const [first = '', ...rest] = network === undefined && this.network ? [...this.network.enter, ...command] : command;
    const child = spawn(first, rest, {
      cwd: this.folder,
      env: { ...this.settings(), GUIDE: state, BASH_ENV: join(this.state, 'prelude') },
      stdio: [types === undefined ? 'ignore' : 'pipe', output, output],
      detached: true,
    });
    child.stdin?.end(`${types}\n`);
    return child;
  }

  private settings(): Record<string, string> {
    const inherited = Object.entries(env).filter(([name]) => INHERITED.test(name)) as [string, string][];
    const home = homedir();
    return {
      ...Object.fromEntries(inherited),
      PATH: paths.join(delimiter),
      HOME: join(this.state, 'home'),
      XDG_CACHE_HOME: env.XDG_CACHE_HOME ?? join(home, '.cache'),
      npm_config_cache: env.npm_config_cache ?? join(home, '.npm'),
      npm_config_userconfig: env.npm_config_userconfig ?? join(home, '.npmrc'),
      npm_config_prefer_offline: 'true',
      NODE: execPath,
      ASK,
    };
  }

  private whereItIs(): string {
    const cwd = join(this.state, 'cwd');
    return existsSync(cwd) ? readFileSync(cwd, 'utf8').trim() : this.folder;
  }

  private nextLog(): string {
    const log = join(this.state, `${this.shells++}.log`);
    writeFileSync(log, '');
    return log;
  }
}

function kill({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function assertSaid(block: Block, script: string, log: string): void {
  const { says } = block.marks;
  if (says === undefined || new RegExp(says, 'm').test(readFileSync(log, 'utf8'))) return;
  const last = script.trimEnd().split('\n').length;
  throw new Error(told(block, last, script, `did not say ${says}`, log));
}

/** Page, line, command, what happened, and the last of what was said. */
function told({ page, line }: Running['block'], at: number, script: string, what: string, log: string): string {
  const command = script.split('\n')[at - 1] ?? '';
  const output = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-OUTPUT_LINES_SHOWN);
  return `${page}:${line + at - 1}: "${command}" ${what}:\n${output.join('\n')}`;
}

/** The project as git has it or would, as a reader's clone. */
function clone(to: string): void {
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: packageRoot,
  });
  for (const path of list
    .toString()
    .split('\0')
    .filter((each) => each !== '' && existsSync(join(packageRoot, each)))) {
    cpSync(join(packageRoot, path), join(to, path), { recursive: true });
  }
  spawnSync('git', ['init', '--quiet'], { cwd: to });
}

/** Another folder that goes on from one: with all that was done there, or only with what was installed and built. */
function goOnFrom(from: string, to: string, what: 'all' | 'build'): void {
  if (what === 'build') clone(to);
  mkdirSync(to, { recursive: true });
  const entries = what === 'build' ? ['dist'] : readdirSync(from).filter((name) => name !== 'node_modules');
  // With owners: what PostgreSQL keeps is not root's, where root starts it.
  execFileSync('cp', ['-a', ...entries.map((name) => join(from, name)), to]);
  linkAll(join(from, 'node_modules'), join(to, 'node_modules'));
}

/** The same files under other names: a second copy of the packages takes a second, and no room. */
function linkAll(from: string, to: string): void {
  mkdirSync(to);
  for (const each of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, each.name), join(to, each.name)];
    if (each.isDirectory()) linkAll(source, target);
    else if (each.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else linkSync(source, target);
  }
}

/** What a block can be marked to need, and why it is not here, if it is not. */
const NEEDS: Readonly<Record<string, () => string | undefined>> = {
  python: () =>
    spawnSync('python3', ['-c', 'import ensurepip, venv']).status === 0 ? undefined : 'There is no python3 with venv.',
  bubblewrap: whyNoProcessSandboxes,
  clickhouse: whyNoChdb,
};

function whyNot({ page, line, marks }: Block): string | undefined {
  if (marks.needs === undefined) return undefined;
  const why = NEEDS[marks.needs];
  if (!why) throw new Error(`${page}:${line}: nobody knows what ${marks.needs} is`);
  return why();
}

const folder = temporaryFolder();
// PostgreSQL, which is not root where root starts it, runs from there.
chmodSync(folder.path, 0o755);
afterAll(folder.remove);

const readme = join(folder.path, 'readme');
let readmeDone = false;

/** README.md is for a clone, CONTRIBUTING.md for one that was installed and built, and docs/ goes on where README.md ends. */
function begin({ path }: Page): string {
  const place = join(folder.path, path.replace(/\W+/g, '-').toLowerCase());
  if (path === 'README.md') clone(readme);
  else if (!readmeDone) throw new Error(`README.md, which ${path} goes on from, did not come to its end.`);
  else goOnFrom(readme, place, path === 'CONTRIBUTING.md' ? 'build' : 'all');
  return path === 'README.md' ? readme : place;
}

describe.each(guides().filter(({ blocks }) => blocks.some(isRun)))('$path', { timeout: 600_000 }, (page) => {
  let terminal: Terminal | undefined;
  let failed: string | undefined;

  beforeAll(async () => {
    terminal = await Terminal.open(page, begin(page));
  }, 600_000);

  afterAll(async () => {
    await terminal?.close();
    readmeDone ||= failed === undefined;
  }, 120_000);

  for (const block of page.blocks.filter(isRun)) {
    const why = whyNot(block);
    const command = block.marks.file ?? block.text.split('\n', 1)[0];
    it.skipIf(why !== undefined)(`line ${block.line}: ${command}${why ? ` (${why})` : ''}`, async ({ skip }) => {
      if (failed) return skip(`${failed} failed, and what follows builds on it`);
      failed = `line ${block.line}`;
      await terminal?.do(block);
      failed = undefined;
    });
  }
});
