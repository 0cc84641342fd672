import type { Attack } from './attack.js';
import {
  attacksIn,
  attemptOf,
  busyTooLong,
  floods,
  forgedBy,
  forges,
  hugeReply,
  idleTooLong,
  outOfMemory,
  probesBy,
  signalsUs,
  writesOutside,
} from './common.js';
import { withEgress } from './egress.js';

/** `body` is that of an async function of `o`, the facts; it returns whether it worked, or what it found. */
const node = (body: string): string => `
const fs = require('node:fs'), net = require('node:net'), dgram = require('node:dgram'), path = require('node:path');
const child = require('node:child_process'), { Worker } = require('node:worker_threads');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const receive = (socket) => new Promise((resolve, reject) => {
  socket.once('data', (data) => resolve(String(data))).once('error', reject);
});
${attemptOf(body)}`;

const attacks = attacksIn(node);

const resources: Attack[] = [
  ...attacks({
    'fork bomb': [
      `let up = 0, dead = 0;
     for (let i = 0; i < 6; i += 1) {
       const each = child.spawn(process.execPath, ['-e', 'console.log(1); setTimeout(() => {}, 30000)'], { stdio: ['ignore', 'pipe', 'ignore'] });
       each.on('error', () => { dead += 1; }).on('exit', () => { dead += 1; });
       each.stdout?.once('data', () => { up += 1; });
       held.push(each);
     }
     for (let waited = 0; waited < 15000 && up < 6 && dead === 0; waited += 50) await sleep(50);
     return up === 6;`,
      { limits: { turnMs: 20_000 }, stopped: ['answered', 'out_of_memory', 'crash'] },
    ],
    'thread bomb': [
      `await Promise.all(Array.from({ length: 40 }, () => new Promise((resolve, reject) => {
       new Worker('setTimeout(() => {}, 3000)', { eval: true, resourceLimits: { maxOldGenerationSizeMb: 8 } })
         .once('online', resolve).once('error', reject);
     })));
     return true;`,
      { limits: { turnMs: 4_000 }, stopped: ['answered', 'out_of_memory', 'crash', 'timeout'] },
    ],
    'memory bomb': ['while (held.length < 200) held.push(Buffer.alloc(1e6, 1)); return true;', outOfMemory],
    'memory bomb on the heap': [
      'while (held.length < 4e6) held.push({ n: held.length }); return true;',
      { limits: { turnMs: 8_000 }, stopped: ['out_of_memory'] },
    ],
    'CPU loop': [
      'const end = process.cpuUsage().user + 1e6; while (process.cpuUsage().user < end); return true;',
      busyTooLong,
    ],
    'CPU loop in a thread': [`new Worker('for (;;);', { eval: true }); await sleep(1500); return true;`, busyTooLong],
    sleep: ['await sleep(1500); return true;', idleTooLong],
    'a sleep that blocks': [
      'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500); return true;',
      idleTooLong,
    ],
    'ignoring signals': [
      `process.on('SIGTERM', () => {}).on('SIGINT', () => {}); await sleep(1500); return true;`,
      idleTooLong,
    ],
    'stdout flood': ['for (let i = 0; i < 80; i += 1) { fs.writeSync(1, "x".repeat(1e5)); } return true;', floods],
    'stderr flood': ['for (let i = 0; i < 80; i += 1) { fs.writeSync(2, "x".repeat(1e5)); } return true;', floods],
    'disk fill': 'for (let i = 0; i < 20; i += 1) fs.appendFileSync("fill", "x".repeat(1e6)); return true;',
    'disk fill with many files':
      'for (let i = 0; i < 20; i += 1) fs.writeFileSync("fill" + i, "x".repeat(5e5)); return true;',
    'descriptor flood': 'for (let i = 0; i < 900; i += 1) held.push(fs.openSync("/dev/null")); return true;',
  }),
  ...attacksIn((source) => source)({
    'timing out in init': [
      `const init = () => new Promise((resolve) => setTimeout(resolve, 1500)); const act = () => ({ worked: true });`,
      { limits: { initMs: 300, stallMs: 300 }, stopped: ['timeout'] },
    ],
    'huge reply': ['const act = () => "x".repeat(8e6);', hugeReply(8e6)],
  }),
];

const files: Attack[] = attacks({
  'reading /etc/shadow': 'return fs.readFileSync("/etc/shadow", "utf8").startsWith("root:");',
  'reading /etc/passwd': 'return fs.readFileSync("/etc/passwd", "utf8").includes("root:");',
  'reading a file of the host': 'return fs.readFileSync(o.secretFile, "utf8");',
  'climbing out with dots': 'return fs.readFileSync("../".repeat(20) + o.secretFile.slice(1), "utf8");',
  "another agent's files": [
    'return fs.readFileSync(o.neighbourFile, "utf8") === "mine";',
    { neighbour: node('fs.writeFileSync(o.neighbourFile, "mine"); return true;') },
  ],
  'writing outside': ['fs.writeFileSync(o.outsideFile, "x"); return true;', writesOutside],
  'writing through a symlink': [
    'fs.symlinkSync(o.outsideFile, "link"); fs.writeFileSync("link", "x"); return true;',
    writesOutside,
  ],
  'reading through a symlink': 'fs.symlinkSync(o.secretFile, "link"); return fs.readFileSync("link", "utf8");',
  'reading through a hard link': ['fs.linkSync(o.secretFile, o.outsideFile); return true;', writesOutside],
  'making a file in the root': 'fs.mkdirSync("/agon-attack-dir"); fs.rmdirSync("/agon-attack-dir"); return true;',
  'starting a shell': 'return child.execFileSync("/bin/sh", ["-c", "echo yes"], { encoding: "utf8" }) === "yes\\n";',
  'the environment': 'return process.env.AGON_ATTACK_SECRET;',
  'inherited descriptors': `for (let fd = 5; fd < 256; fd += 1) {
       const bytes = Buffer.alloc(100);
       try { held.push(bytes.toString('utf8', 0, fs.readSync(fd, bytes, 0, 100, 0))); } catch {}
     }
     return held.join();`,
});

const processes: Attack[] = attacks({
  "another process's environment": 'return fs.readFileSync("/proc/" + o.victimPid + "/environ", "utf8");',
  'signals to the host': ['process.kill(o.hostPid, "SIGUSR2"); await sleep(100); return true;', signalsUs],
  'signals to the parent': [
    'process.kill(process.ppid, "SIGUSR2"); await sleep(100); return true;',
    { ...signalsUs, stopped: ['answered', 'crash'] },
  ],
  'signals to another process': 'process.kill(o.victimPid, 0); return true;',
  'orphan daemon': [
    `child.spawn(process.execPath, ['-e', 'setTimeout(() => {}, 30000)', 'orphan-' + o.mark], { detached: true, stdio: 'ignore' }).unref();
     await sleep(300);
     return true;`,
    { worked: (_, world) => world.orphans().length > 0, afterMs: 300 },
  ],
  'becoming root': 'process.setuid(0); return true;',
  'changing its priority': 'require("node:os").setPriority(-5); return true;',
  'the debugger':
    'require("node:inspector").open(0, "127.0.0.1"); return require("node:inspector").url() !== undefined;',
  'the names of the network': 'return Object.keys(require("node:os").networkInterfaces()).length > 0;',
});

const network: Attack[] = attacks({
  TCP: 'return receive(net.connect(o.tcpPort, "127.0.0.1"));',
  UDP: `const socket = dgram.createSocket('udp4');
     return new Promise((resolve, reject) => {
       socket.on('message', (data) => resolve(String(data))).on('error', reject);
       socket.send('x', o.udpPort, '127.0.0.1', (error) => { if (error) reject(error); });
     });`,
  DNS: [
    `const { Resolver } = require('node:dns').promises;
     const resolver = new Resolver({ timeout: 300, tries: 1 });
     resolver.setServers(['127.0.0.1:' + o.udpPort]);
     await resolver.resolve4('example.org').catch(() => {});
     return true;`,
    { worked: (_, world) => world.heard('udp') },
  ],
  'a unix socket': 'return receive(net.connect(o.unixPath));',
  'an abstract socket': 'return receive(net.connect("\\0" + o.abstractName));',
  listening:
    'await new Promise((resolve, reject) => net.createServer().once("error", reject).listen(0, "127.0.0.1", resolve)); return true;',
  fetch: [
    'await fetch("http://127.0.0.1:" + o.tcpPort).catch(() => {}); return true;',
    { worked: (_, world) => world.heard('tcp'), afterMs: 50 },
  ],
});

const probes = probesBy(
  attacks,
  (path, flag) => `fs.openSync("${path}", fs.constants.${flag} | fs.constants.O_NONBLOCK); return true;`,
);

const imitations: Attack[] = [
  ...attacks({
    'an answer before the question': [
      `fs.writeSync(4, 't R{"worked":true}\\n'); await sleep(500); return false;`,
      forges,
    ],
    'a second answer to one question': [`fs.writeSync(4, 't R{"worked":true}\\nt R1\\n'); return false;`, forges],
    'an answer printed': `fs.writeSync(1, 't R{"worked":true}\\n'); await sleep(500); return false;`,
  }),
  ...forgedBy((json) => `const act = () => (${json});`),
];

export const nodeAttacks: readonly Attack[] = [
  ...resources,
  ...files,
  ...processes,
  ...network,
  ...probes,
  ...imitations,
  ...network.filter(({ name }) => name !== 'listening').map(withEgress),
];
