import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, describe, expect, it } from 'vitest';
import { whyNoPython } from '../../sdk/python/python.contract.js';
import { packageRoot } from '../version.js';
import { temporaryFolder } from './agon.contract.js';

/** The two blocks of README's guide: one starts the arena, the other is typed in another terminal. */
function guide(): [arena: string, commands: string] {
  const readme = readFileSync(join(packageRoot, 'README.md'), 'utf8');
  const section = readme.split('## Play from outside')[1]?.split('\n## ')[0] ?? '';
  const blocks = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text]) => text ?? '');
  const [arena, commands] = blocks;
  if (blocks.length !== 2 || !arena || !commands) throw new Error(`The guide has ${blocks.length} blocks, not two.`);
  return [arena, commands];
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

const why = whyNoPython ? ` (${whyNoPython})` : '';
describe.skipIf(whyNoPython !== undefined)(`README's guide to playing from outside${why}`, { timeout: 300_000 }, () => {
  const folder = temporaryFolder();
  let arena: ChildProcess | undefined;

  afterAll(async () => {
    if (arena?.pid && arena.exitCode === null) {
      process.kill(-arena.pid, 'SIGTERM');
      await once(arena, 'close');
    }
    folder.remove();
  });

  it('takes a new user to a Python agent that wins against the house', async () => {
    // A clone of the project, as far as the commands can see; installing leaves things behind in what it installs.
    writeFileSync(join(folder.path, 'package.json'), '{ "private": true }');
    mkdirSync(join(folder.path, 'node_modules', '.bin'), { recursive: true });
    symlinkSync(join(packageRoot, 'ops', 'cli', 'agon.js'), join(folder.path, 'node_modules', '.bin', 'agon'));
    cpSync(join(packageRoot, 'sdk'), join(folder.path, 'sdk'), { recursive: true });
    // Word for word, but for the port: others may be testing on this machine, too.
    const port = `${await freePort()}`;
    const [start, commands] = guide().map((text) => text.replaceAll('4602', port)) as [string, string];
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, AGON_PORT: '0', AGON_ANALYTICS: 'false' };
    const bash = (script: string) =>
      spawn('bash', ['-euo', 'pipefail', '-c', script], {
        cwd: folder.path,
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      });
    const serving = bash(start);
    arena = serving;
    serving.stderr.resume();
    await new Promise<void>((resolve, reject) => {
      createInterface(serving.stdout).on('line', (line) => line.includes('is ready') && resolve());
      serving.once('close', (code) => reject(new Error(`The arena ended with ${code}.`)));
    });

    const typed = bash(commands);
    const output = { text: '', errors: '' };
    typed.stdout.on('data', (chunk) => {
      output.text += chunk;
    });
    typed.stderr.on('data', (chunk) => {
      output.errors += chunk;
    });
    const [code] = (await once(typed, 'close')) as [number | null];
    expect({ code, errors: code === 0 ? '' : output.errors }).toEqual({ code: 0, errors: '' });
    expect(output.text).toMatch(/^won$/m);
    expect(output.text).toMatch(/ada\.winner/);
  });
});
