import type { Attack } from './attack.js';
import {
  attacksIn,
  busyTooLong,
  forgedBy,
  hugeReply,
  idleTooLong,
  probesBy,
  python,
  signalsUs,
  writesOutside,
} from './common.js';
import { egressAttacks, withEgress } from './egress.js';
import { syscallAttacks } from './syscalls.js';

const attack = attacksIn(python);

const resources: Attack[] = [
  attack(
    'fork bomb',
    `born = 0
for i in range(48):
    try:
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
        born += 1
    except OSError:
        break
return born == 48`,
  ),
  attack(
    'thread bomb',
    `for i in range(48):
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
return True`,
  ),
  attack('memory bomb', 'while len(held) < 200: held.append(b"x" * 1_000_000)\nreturn True', {
    stopped: ['out_of_memory'],
  }),
  attack(
    'memory bomb in a child',
    `child = os.fork()
if child == 0:
    while len(held) < 200: held.append(b"x" * 1_000_000)
    os._exit(0)
return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0`,
    {
      stopped: ['answered', 'out_of_memory', 'crash'],
      worked: (seen) => JSON.stringify(seen.reply)?.includes('true') ?? false,
    },
  ),
  attack(
    'CPU loop',
    'end = time.process_time() + 1.0\nwhile time.process_time() < end: pass\nreturn True',
    busyTooLong,
  ),
  attack(
    'CPU loop in a child',
    `if os.fork() == 0:
    end = time.process_time() + 1.0
    while time.process_time() < end: pass
    os._exit(0)
os.wait()
return True`,
    busyTooLong,
  ),
  attack('sleep', 'time.sleep(1.5)\nreturn True', idleTooLong),
  {
    name: 'timing out in init',
    source: 'import time\ndef init(o): time.sleep(1.5)\ndef act(o): return {"worked": True}\n',
    limits: { initMs: 300, stallMs: 300 },
    stopped: ['timeout'],
  },
  attack(
    'ignoring signals',
    'for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(1.5)\nreturn True',
    idleTooLong,
  ),
  attack('stdout flood', 'for i in range(80): os.write(1, b"x" * 100_000)\nreturn True', { stopped: ['flood'] }),
  attack('stderr flood', 'for i in range(80): os.write(2, b"x" * 100_000)\nreturn True', { stopped: ['flood'] }),
  {
    name: 'huge reply',
    source: 'def act(o): return "x" * 8_000_000\n',
    ...hugeReply(8_000_000),
  },
  attack('a line without an end on the protocol', 'for i in range(80): os.write(4, b"x" * 100_000)\nreturn True', {
    stopped: ['reply_too_large'],
    worked: ({ fault }) => fault === undefined || fault.rule === 'ended',
  }),
  attack('disk fill', 'with open("fill", "wb") as f:\n    for i in range(20): f.write(b"x" * 1_000_000)\nreturn True'),
  attack(
    'disk fill with many files',
    'for i in range(20):\n    open(f"fill{i}", "wb").write(b"x" * 500_000)\nreturn True',
  ),
  attack('descriptor flood', 'for i in range(900): held.append(os.open("/dev/null", 0))\nreturn True'),
  attack(
    'raising its own limits',
    'import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\nreturn True',
  ),
];

const files: Attack[] = [
  attack('reading /etc/shadow', 'return open("/etc/shadow").read().startswith("root:")'),
  attack('reading /etc/passwd', 'return "root:" in open("/etc/passwd").read()'),
  attack('reading a file of the host', 'return open(o["secretFile"]).read()'),
  attack('climbing out with dots', 'return open("../" * 20 + o["secretFile"].lstrip("/")).read()'),
  attack("another agent's files", 'return open(o["neighbourFile"]).read() == "mine"', {
    neighbour: python('open(o["neighbourFile"], "w").write("mine")\nreturn True'),
  }),
  attack('writing outside', 'open(o["outsideFile"], "w").write("x")\nreturn True', writesOutside),
  attack(
    'writing through a symlink',
    'os.symlink(o["outsideFile"], "link")\nopen("link", "w").write("x")\nreturn True',
    writesOutside,
  ),
  attack('reading through a symlink', 'os.symlink(o["secretFile"], "link")\nreturn open("link").read()'),
  attack(
    'reading through a hard link',
    'os.link(o["secretFile"], os.path.dirname(o["outsideFile"]) + "/taken")\nreturn True',
    writesOutside,
  ),
  attack(
    'overwriting its interpreter',
    'os.close(os.open(os.path.dirname(os.__file__) + "/agon-taken", os.O_CREAT | os.O_WRONLY))\nos.unlink(os.path.dirname(os.__file__) + "/agon-taken")\nreturn True',
  ),
  attack('making a file in the root', 'os.mkdir("/agon-attack-dir")\nos.rmdir("/agon-attack-dir")\nreturn True'),
  attack(
    'starting a shell',
    'return subprocess.run(["/bin/sh", "-c", "echo yes"], capture_output=True).stdout == b"yes\\n"',
  ),
  attack(
    'a set-user-id program',
    'return subprocess.run(["/bin/su", "--version"], capture_output=True).returncode == 0',
  ),
  attack('the environment', 'return os.environ.get("AGON_ATTACK_SECRET")'),
  attack(
    'inherited descriptors',
    `for fd in range(5, 256):
    try:
        held.append(os.pread(fd, 100, 0).decode())
    except OSError:
        pass
return held`,
  ),
];

const processes: Attack[] = [
  attack("another process's environment", 'return open(f"/proc/{o[\'victimPid\']}/environ").read()'),
  attack('signals to the host', 'os.kill(o["hostPid"], signal.SIGUSR2)\ntime.sleep(0.1)\nreturn True', signalsUs),
  attack('signals to the parent', 'os.kill(os.getppid(), signal.SIGUSR2)\ntime.sleep(0.1)\nreturn True', {
    ...signalsUs,
    stopped: ['answered', 'crash'],
  }),
  attack('signals to another process', 'os.kill(o["victimPid"], 0)\nreturn True'),
  attack(
    'orphan daemon',
    // The pipe closes when the orphan has become another program.
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
  ),
  attack(
    'an orphan that outlives a crash',
    `r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.execv(sys.executable, [f"orphan-{o['mark']}", "-c", "import time; time.sleep(30)"])
os.close(w)
os.read(r, 1)
time.sleep(0.3)
os._exit(1)`,
    { worked: (_, world) => world.orphans().length > 0, afterMs: 600, stopped: ['crash'] },
  ),
];

const connect = (family: string, kind: string, address: string): string =>
  `s = socket.socket(socket.${family}, socket.${kind})\ns.settimeout(2)\ns.connect(${address})\n`;

const network: Attack[] = [
  attack('TCP', `${connect('AF_INET', 'SOCK_STREAM', '("127.0.0.1", o["tcpPort"])')}return s.recv(100).decode()`),
  attack(
    'UDP',
    `${connect('AF_INET', 'SOCK_DGRAM', '("127.0.0.1", o["udpPort"])')}s.send(b"x")\nreturn s.recv(100).decode()`,
  ),
  attack(
    'DNS',
    `${connect('AF_INET', 'SOCK_DGRAM', '("127.0.0.1", o["udpPort"])')}
s.send(b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x07example\\x03org\\x00\\x00\\x01\\x00\\x01")
return s.recv(512).decode()`,
  ),
  attack(
    'the resolver',
    'return len(socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)) > 0 and socket.socket() is not None',
  ),
  attack('a unix socket', `${connect('AF_UNIX', 'SOCK_STREAM', 'o["unixPath"]')}return s.recv(100).decode()`),
  attack(
    'an abstract socket',
    // Some servers fill an abstract name with zeros up to its greatest length.
    `name = "\\0" + o["abstractName"]
for full in (name, name.ljust(108, "\\0")):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(2)
    if s.connect_ex(full) == 0: return s.recv(100).decode()
return False`,
  ),
  attack('listening', 's = socket.socket()\ns.bind(("127.0.0.1", 0))\ns.listen()\nreturn True'),
  attack('a raw socket', 'return socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).fileno() > 0'),
  attack('a packet socket', 'return socket.socket(socket.AF_PACKET, socket.SOCK_RAW).fileno() > 0'),
  attack('a netlink socket', 'return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).fileno() > 0'),
  attack('names of the network', 'return len(os.listdir("/sys/class/net")) > 0'),
];

const probes = probesBy(attack, (path, flag) => `os.open("${path}", os.${flag} | os.O_NONBLOCK)\nreturn True`);

const imitations: Attack[] = [
  attack('an answer before the question', 'os.write(4, b"t R{\\"worked\\": true}\\n")\ntime.sleep(0.5)\nreturn False', {
    stopped: ['forged_reply'],
  }),
  attack('a second answer to one question', 'os.write(4, b"t R{\\"worked\\": true}\\nt R1\\n")\nreturn False', {
    stopped: ['forged_reply'],
  }),
  attack(
    'an answer printed',
    'sys.stdout.write("t R{\\"worked\\": true}\\n")\nsys.stdout.flush()\ntime.sleep(0.5)\nreturn False',
  ),
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
