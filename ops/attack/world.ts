import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
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
import type { EgressDoor } from '../../sandbox-runner/index.js';
import { type EgressSite, egressSite } from './egress.js';

/** What an attacker is told. It knows where everything is; only the secret itself it has to find. */
export interface Facts {
  readonly mark: string;
  readonly secretFile: string;
  /** Where code of the host lies that knows the secret. */
  readonly moduleFolder: string;
  readonly outsideFile: string;
  readonly neighbourFile: string;
  readonly tcpPort: number;
  readonly udpPort: number;
  readonly unixPath: string;
  readonly abstractName: string;
  readonly welcomePort: number;
  readonly proxyPort: number;
  readonly hostPid: number;
  readonly victimPid: number;
}

/**
 * Things of the host that are worth attacking, all of them ours: a secret file, a folder that anybody may write to, a
 * process with a secret in its environment, and servers that hear whoever reaches them.
 */
export class World {
  readonly secret: string;
  readonly facts: Facts;
  private readonly folder: string;
  private readonly victim: ChildProcess;
  private readonly servers: readonly (Server | Socket)[];
  private readonly site: EgressSite;
  private heardKinds = new Set<string>();
  private readonly onSignal = (): void => {
    this.heardKinds.add('signal');
  };

  private constructor(
    folder: string,
    secret: string,
    servers: readonly (Server | Socket)[],
    site: EgressSite,
    heard: Set<string>,
  ) {
    this.site = site;
    this.secret = secret;
    this.folder = folder;
    this.servers = servers;
    this.heardKinds = heard;
    this.victim = spawn('/bin/sleep', ['600'], { env: { SECRET: secret }, stdio: 'ignore' });
    const mark = randomBytes(8).toString('hex');
    const [tcp, unix, abstract, udp] = servers;
    const port = (server: Server | Socket | undefined) => (server?.address() as AddressInfo | undefined)?.port ?? 0;
    this.facts = {
      mark,
      secretFile: join(folder, 'secret'),
      moduleFolder: folder,
      outsideFile: join(folder, 'open', 'taken'),
      neighbourFile: join('/tmp', `agon-neighbour-${mark}`),
      tcpPort: port(tcp),
      udpPort: port(udp),
      unixPath: String((unix as Server).address()),
      abstractName: String((abstract as Server).address()).replace(/^\0/, ''),
      welcomePort: site.welcomePort,
      proxyPort: site.proxyPort,
      hostPid: process.pid,
      victimPid: this.victim.pid ?? 0,
    };
    process.on('SIGUSR2', this.onSignal);
    process.env.AGON_ATTACK_SECRET = secret;
  }

  static async create(secret: string): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), 'agon-attack-'));
    // Open to everybody on purpose: only the sandbox may be what keeps an agent out.
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'open'));
    chmodSync(join(folder, 'open'), 0o777);
    writeFileSync(join(folder, 'secret'), secret, { mode: 0o644 });
    writeFileSync(join(folder, 'host_secret.mjs'), `export default '${secret}';`, { mode: 0o644 });
    writeFileSync(join(folder, 'host_secret.cjs'), `module.exports = '${secret}';`, { mode: 0o644 });
    writeFileSync(join(folder, 'host_secret.py'), `SECRET = '${secret}'`, { mode: 0o644 });
    const heard = new Set<string>();
    const listener = (name: string) =>
      createServer((socket) => socket.on('error', () => {}).end(secret, () => heard.add(name)));
    const listen = (server: Server, at: object) =>
      new Promise<Server>((resolve, reject) => server.once('error', reject).listen(at, () => resolve(server)));
    const udp = createSocket('udp4');
    udp.on('message', (_, from) => {
      heard.add('udp');
      udp.send(secret, from.port, from.address);
    });
    await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve));
    const unixPath = join(folder, 'open', 'socket');
    const tcp = await listen(listener('tcp'), { port: 0, host: '127.0.0.1' });
    const servers = [
      tcp,
      await listen(listener('unix'), { path: unixPath, readableAll: true, writableAll: true }),
      await listen(listener('abstract'), { path: `\0agon-attack-${randomBytes(6).toString('hex')}` }),
      udp,
    ];
    const site = await egressSite((tcp.address() as AddressInfo).port, secret);
    return new World(folder, secret, servers, site, heard);
  }

  /** A way out for one agent, to a host that says welcome. */
  door(seat: number): Promise<EgressDoor> {
    return this.site.door(seat);
  }

  heard(what: string): boolean {
    return this.heardKinds.has(what);
  }

  taken(): boolean {
    return existsSync(this.facts.outsideFile);
  }

  /** Processes of this machine that carry the mark in their command line. */
  orphans(): number[] {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => {
        try {
          return (
            pid > 0 &&
            pid !== process.pid &&
            readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`orphan-${this.facts.mark}`)
          );
        } catch {
          return false;
        }
      });
  }

  /** Forgets what an attack has done, so that the next one is judged alone. */
  async settle(): Promise<void> {
    for (const pid of this.orphans()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
    await sleep(0);
    await this.site.settle();
    this.heardKinds.clear();
    for (const file of [this.facts.outsideFile, this.facts.neighbourFile])
      rmSync(file, { force: true, recursive: true });
  }

  async close(): Promise<void> {
    await this.settle();
    this.victim.kill('SIGKILL');
    process.off('SIGUSR2', this.onSignal);
    delete process.env.AGON_ATTACK_SECRET;
    await this.site.close();
    for (const server of this.servers) server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
