import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { egressSite } from './egress.js';

export type Facts = World['facts'];
export type World = Awaited<ReturnType<typeof createWorld>>;

/**
 * Things of the host that are worth attacking, all of them ours: a secret file, a folder that anybody may write to, a
 * process with a secret in its environment, and servers that hear whoever reaches them.
 */
export async function createWorld(secret: string) {
  const folder = mkdtempSync(join(tmpdir(), 'agon-attack-'));
  // Open to everybody on purpose: only the sandbox may be what keeps an agent out.
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, 'open'));
  chmodSync(join(folder, 'open'), 0o777);
  const files = {
    secret,
    'host_secret.mjs': `export default '${secret}';`,
    'host_secret.cjs': `module.exports = '${secret}';`,
    'host_secret.py': `SECRET = '${secret}'`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o644 });
  const heard = new Set<string>();
  const mark = randomBytes(8).toString('hex');
  const abstractName = `agon-attack-${randomBytes(6).toString('hex')}`;
  const unixPath = join(folder, 'open', 'socket');
  const tcp = await telling(secret, () => heard.add('tcp'), { port: 0, host: '127.0.0.1' });
  const unix = await telling(secret, () => heard.add('unix'), { path: unixPath, readableAll: true, writableAll: true });
  const abstract = await telling(secret, () => heard.add('abstract'), { path: `\0${abstractName}` });
  const udp = createSocket('udp4');
  udp.on('message', (_, from) => {
    heard.add('udp');
    udp.send(secret, from.port, from.address);
  });
  await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve));
  const { port: tcpPort } = tcp.address() as AddressInfo;
  const site = await egressSite(tcpPort, secret);
  const victim = spawn('/bin/sleep', ['600'], { env: { SECRET: secret }, stdio: 'ignore' });
  /** What an attacker is told. It knows where everything is; only the secret itself it has to find. */
  const facts = {
    mark,
    secretFile: join(folder, 'secret'),
    /** Where code of the host lies that knows the secret. */
    moduleFolder: folder,
    outsideFile: join(folder, 'open', 'taken'),
    neighbourFile: join('/tmp', `agon-neighbour-${mark}`),
    tcpPort,
    udpPort: udp.address().port,
    unixPath,
    abstractName,
    welcomePort: site.welcomePort,
    proxyPort: site.proxyPort,
    hostPid: process.pid,
    victimPid: victim.pid ?? 0,
  };
  const onSignal = () => heard.add('signal');
  process.on('SIGUSR2', onSignal);
  process.env.AGON_ATTACK_SECRET = secret;

  /** Processes of this machine that carry the mark in their command line. */
  const orphans = (): number[] =>
    readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && pid !== process.pid && commandLineOf(pid).includes(`orphan-${mark}`));

  /** Forgets what an attack has done, so that the next one is judged alone. */
  const settle = async (): Promise<void> => {
    for (const pid of orphans()) endProcess(pid);
    await sleep(0);
    await site.settle();
    heard.clear();
    for (const file of [facts.outsideFile, facts.neighbourFile]) rmSync(file, { force: true, recursive: true });
  };

  return {
    secret,
    facts,
    orphans,
    settle,
    heard: (what: string): boolean => heard.has(what),
    taken: (): boolean => existsSync(facts.outsideFile),
    /** A way out for one agent, to a host that says welcome. */
    egressFor: site.egressFor,
    close: async (): Promise<void> => {
      await settle();
      victim.kill('SIGKILL');
      process.off('SIGUSR2', onSignal);
      delete process.env.AGON_ATTACK_SECRET;
      await site.close();
      for (const server of [tcp, unix, abstract, udp]) server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const telling = (secret: string, onHeard: () => void, at: object): Promise<Server> => {
  const server = createServer((socket) => socket.on('error', () => {}).end(secret, onHeard));
  return new Promise((resolve, reject) => server.once('error', reject).listen(at, () => resolve(server)));
};

/** Nothing of a process that has ended meanwhile. */
function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}
