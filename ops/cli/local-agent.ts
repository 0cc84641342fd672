import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { AgonError } from '../../services/kernel/index.js';

/** An author's own code, run as it is: no sandbox, no limits, every library that the machine has. */
export interface LocalAgent {
  act(observation: unknown, matchId: string): Promise<unknown>;
  close(): void;
}

export async function localAgent(file: string): Promise<LocalAgent> {
  const path = resolve(file);
  if (!existsSync(path)) throw new AgonError('FILE.UNREADABLE', `There is no file ${file}.`);
  if (/^\.m?js$/.test(extname(path))) return scriptAgent(path);
  if (extname(path) === '.py') return new PythonAgent(path);
  throw new AgonError('FILE.UNKNOWN_LANGUAGE', `${file}: an agent is a file that ends in .js, .mjs or .py.`);
}

type Act = (observation: unknown) => unknown;

async function scriptAgent(path: string): Promise<LocalAgent> {
  const module = (await import(pathToFileURL(path).href)) as { act?: Act; default?: { act?: Act } };
  const act = module.act ?? module.default?.act;
  if (!act) throw new AgonError('AGENTS.BROKEN_CODE', `${path} exports no function act(observation).`);
  return { act: async (observation) => act(observation), close: () => {} };
}

/** Reads a line, calls act, prints a line. What the agent itself prints goes to standard error. */
const SHIM = `import importlib.util, json, sys
out, sys.stdout = sys.stdout, sys.stderr
spec = importlib.util.spec_from_file_location("agent", sys.argv[1])
agent = importlib.util.module_from_spec(spec)
spec.loader.exec_module(agent)
for line in sys.stdin:
    out.write(json.dumps(agent.act(json.loads(line))) + "\\n")
    out.flush()
`;

/** One interpreter, asked one thing after the other. */
class PythonAgent implements LocalAgent {
  private readonly child: ChildProcess;
  private readonly asked: { resolve: (value: unknown) => void; reject: (error: AgonError) => void }[] = [];
  private ended = false;

  constructor(path: string) {
    // In a process group of its own: Ctrl-C is ours to hear. Its input ends with us, and so does it.
    const args = ['-u', '-c', SHIM, path];
    this.child = spawn('python3', args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
    const end = (how: string) => {
      this.ended = true;
      for (const { reject } of this.asked.splice(0)) reject(broken(how));
    };
    this.child.on('error', (error) => end(error.message)).on('close', (code) => end(`exit code ${code}`));
    this.child.stdin?.on('error', () => {});
    if (this.child.stdout) {
      createInterface(this.child.stdout).on('line', (line) => this.asked.shift()?.resolve(JSON.parse(line)));
    }
  }

  act(observation: unknown): Promise<unknown> {
    if (this.ended) return Promise.reject(broken('it has ended'));
    return new Promise((resolve, reject) => {
      this.asked.push({ resolve, reject });
      this.child.stdin?.write(`${JSON.stringify(observation)}\n`);
    });
  }

  close(): void {
    this.child.stdin?.end();
    this.child.kill();
  }
}

const broken = (how: string) => new AgonError('AGENTS.BROKEN_CODE', `The agent's Python is gone: ${how}.`);
