import type { Attack } from './attack.js';
import {
  attacksIn,
  busyTooLong,
  floods,
  forgedBy,
  forges,
  hugeReply,
  idleTooLong,
  outOfMemory,
  probesBy,
  python,
  signalsUs,
  writesOutside,
} from './common.js';
import { egressAttacks, withEgress } from './egress.js';
import { syscallAttacks } from './syscalls.js';

const attacks = attacksIn(python);

const resources: Attack[] = [
  ...attacks({
    'fork bomb': `born = 0
for i in range(48):
    try:
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
        born += 1
    except OSError:
        break
return born == 48`,
    'thread bomb': `for i in range(48):
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
return True`,
    'memory bomb': ['while len(held) < 200: held.append(b"x" * 1_000_000)\nreturn True', outOfMemory],
    'memory bomb in a child': [
      `child = os.fork()
if child == 0:
    while len(held) < 200: held.append(b"x" * 1_000_000)
    os._exit(0)
return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0`,
      {
        stopped: ['answered', 'out_of_memory', 'crash'],
        worked: (seen) => JSON.stringify(seen.reply)?.includes('true') ?? false,
      },
    ],
    'CPU loop': ['end = time.process_time() + 1.0\nwhile time.process_time() < end: pass\nreturn True', busyTooLong],
    'CPU loop in a child': [
      `if os.fork() == 0:
    end = time.process_time() + 1.0
    while time.process_time() < end: pass
    os._exit(0)
os.wait()
return True`,
      busyTooLong,
    ],
    sleep: ['time.sleep(1.5)\nreturn True', idleTooLong],
    'ignoring signals': [
      'for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(1.5)\nreturn True',
      idleTooLong,
    ],
    'stdout flood': ['for i in range(80): os.write(1, b"x" * 100_000)\nreturn True', floods],
    'stderr flood': ['for i in range(80): os.write(2, b"x" * 100_000)\nreturn True', floods],
    'a line without an end on the protocol': [
      'for i in range(80): os.write(4, b"x" * 100_000)\nreturn True',
      { stopped: ['reply_too_large'], worked: ({ fault }) => fault === undefined || fault.rule === 'ended' },
    ],
    'disk fill': 'with open("fill", "wb") as f:\n    for i in range(20): f.write(b"x" * 1_000_000)\nreturn True',
    'disk fill with many files': 'for i in range(20):\n    open(f"fill{i}", "wb").write(b"x" * 500_000)\nreturn True',
    'descriptor flood': 'for i in range(900): held.append(os.open("/dev/null", 0))\nreturn True',
    'raising its own limits': 'import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\nreturn True',
  }),
  ...attacksIn((source) => source)({
    'timing out in init': [
      'import time\ndef init(o): time.sleep(1.5)\ndef act(o): return {"worked": True}\n',
      { limits: { initMs: 300, stallMs: 300 }, stopped: ['timeout'] },
    ],
    'huge reply': ['def act(o): return "x" * 8_000_000\n', hugeReply(8_000_000)],
  }),
];

const files: Attack[] = attacks({
  'reading /etc/shadow': 'return open("/etc/shadow").read().startswith("root:")',
  'reading /etc/passwd': 'return "root:" in open("/etc/passwd").read()',
  'reading a file of the host': 'return open(o["secretFile"]).read()',
  'climbing out with dots': 'return open("../" * 20 + o["secretFile"].lstrip("/")).read()',
  "another agent's files": [
    'return open(o["neighbourFile"]).read() == "mine"',
    { neighbour: python('open(o["neighbourFile"], "w").write("mine")\nreturn True') },
  ],
  'writing outside': ['open(o["outsideFile"], "w").write("x")\nreturn True', writesOutside],
  'writing through a symlink': [
    'os.symlink(o["outsideFile"], "link")\nopen("link", "w").write("x")\nreturn True',
    writesOutside,
  ],
  'reading through a symlink': 'os.symlink(o["secretFile"], "link")\nreturn open("link").read()',
  'reading through a hard link': [
    'os.link(o["secretFile"], os.path.dirname(o["outsideFile"]) + "/taken")\nreturn True',
    writesOutside,
  ],
  'overwriting its interpreter':
    'os.close(os.open(os.path.dirname(os.__file__) + "/agon-taken", os.O_CREAT | os.O_WRONLY))\nos.unlink(os.path.dirname(os.__file__) + "/agon-taken")\nreturn True',
  'making a file in the root': 'os.mkdir("/agon-attack-dir")\nos.rmdir("/agon-attack-dir")\nreturn True',
  'starting a shell': 'return subprocess.run(["/bin/sh", "-c", "echo yes"], capture_output=True).stdout == b"yes\\n"',
  'a set-user-id program': 'return subprocess.run(["/bin/su", "--version"], capture_output=True).returncode == 0',
  'the environment': 'return os.environ.get("AGON_ATTACK_SECRET")',
  'inherited descriptors': `for fd in range(5, 256):
    try:
        held.append(os.pread(fd, 100, 0).decode())
    except OSError:
        pass
return held`,
});

const processes: Attack[] = attacks({
  "another process's environment": 'return open(f"/proc/{o[\'victimPid\']}/environ").read()',
  'signals to the host': ['os.kill(o["hostPid"], signal.SIGUSR2)\ntime.sleep(0.1)\nreturn True', signalsUs],
  'signals to the parent': [
    'os.kill(os.getppid(), signal.SIGUSR2)\ntime.sleep(0.1)\nreturn True',
    { ...signalsUs, stopped: ['answered', 'crash'] },
  ],
  'signals to another process': 'os.kill(o["victimPid"], 0)\nreturn True',
  // The pipe closes when the orphan has become another program.
  'orphan daemon': [
    `r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [f"orphan-{o['mark']}", "-c", "import time; time.sleep(30)"])
    os._exit(0)
os.close(w)
os.wait()
os.read(r, 1)
time.sleep(0.3)
return True`,
    { worked: (_, world) => world.orphans().length > 0, afterMs: 600 },
  ],
  'an orphan that outlives a crash': [
    `r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.execv(sys.executable, [f"orphan-{o['mark']}", "-c", "import time; time.sleep(30)"])
os.close(w)
os.read(r, 1)
time.sleep(0.3)
os._exit(1)`,
    { worked: (_, world) => world.orphans().length > 0, afterMs: 600, stopped: ['crash'] },
  ],
});

const connect = (family: string, kind: string, address: string): string =>
  `s = socket.socket(socket.${family}, socket.${kind})\ns.settimeout(2)\ns.connect(${address})\n`;

const network: Attack[] = attacks({
  TCP: `${connect('AF_INET', 'SOCK_STREAM', '("127.0.0.1", o["tcpPort"])')}return s.recv(100).decode()`,
  UDP: `${connect('AF_INET', 'SOCK_DGRAM', '("127.0.0.1", o["udpPort"])')}s.send(b"x")\nreturn s.recv(100).decode()`,
  DNS: `${connect('AF_INET', 'SOCK_DGRAM', '("127.0.0.1", o["udpPort"])')}
s.send(b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x07example\\x03org\\x00\\x00\\x01\\x00\\x01")
return s.recv(512).decode()`,
  'the resolver':
    'return len(socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)) > 0 and socket.socket() is not None',
  'a unix socket': `${connect('AF_UNIX', 'SOCK_STREAM', 'o["unixPath"]')}return s.recv(100).decode()`,
  // Some servers fill an abstract name with zeros up to its greatest length.
  'an abstract socket': `name = "\\0" + o["abstractName"]
for full in (name, name.ljust(108, "\\0")):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(2)
    if s.connect_ex(full) == 0: return s.recv(100).decode()
return False`,
  listening: 's = socket.socket()\ns.bind(("127.0.0.1", 0))\ns.listen()\nreturn True',
  'a raw socket': 'return socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).fileno() > 0',
  'a packet socket': 'return socket.socket(socket.AF_PACKET, socket.SOCK_RAW).fileno() > 0',
  'a netlink socket': 'return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).fileno() > 0',
  'names of the network': 'return len(os.listdir("/sys/class/net")) > 0',
});

const probes = probesBy(attacks, (path, flag) => `os.open("${path}", os.${flag} | os.O_NONBLOCK)\nreturn True`);

const imitations: Attack[] = [
  ...attacks({
    'an answer before the question': [
      'os.write(4, b"t R{\\"worked\\": true}\\n")\ntime.sleep(0.5)\nreturn False',
      forges,
    ],
    'a second answer to one question': ['os.write(4, b"t R{\\"worked\\": true}\\nt R1\\n")\nreturn False', forges],
    'an answer printed':
      'sys.stdout.write("t R{\\"worked\\": true}\\n")\nsys.stdout.flush()\ntime.sleep(0.5)\nreturn False',
  }),
  ...forgedBy((json) => `import json\ndef act(o): return json.loads(${JSON.stringify(json)})\n`),
];

/** The relay has to listen, and to have a socket; on a loopback device of its own both lead nowhere. */
const allowedWithEgress = new Set(['listening', 'the resolver']);

export const pythonAttacks: readonly Attack[] = [
  ...resources,
  ...files,
  ...processes,
  ...network,
  ...probes,
  ...imitations,
  ...syscallAttacks,
  ...network.filter(({ name }) => !allowedWithEgress.has(name)).map(withEgress),
  ...egressAttacks,
];
