import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { Egress, type EgressEndpoint, type Grant, policyFrom } from '../../sandbox-runner/index.js';
import type { Attack } from './attack.js';
import { attacksIn, ifThere, python } from './common.js';

const listening = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
};

/**
 * What there is to reach for those who were granted egress. `secretPort` is where the host's secret is told to whoever
 * connects: the inside that nobody is to reach.
 */
export async function egressSite(secretPort: number, secret: string) {
  const welcome = createHttpServer((_, response) => response.end('welcome'));
  const careless = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => connect(secretPort, '127.0.0.1').pipe(socket));
  });
  const [welcomePort, proxyPort] = [await listening(welcome), await listening(careless)];
  const allow = [
    { host: 'allowed.test', port: welcomePort, allowPrivate: true },
    { host: 'inside.test', port: secretPort },
    { host: 'both.test', port: secretPort },
    { host: 'keyed.test', upgrade: 'https', headers: { authorization: 'Bearer {{secret:KEY}}' } },
  ];
  const addresses = { 'both.test': ['8.8.8.8', '127.0.0.1'] } as Readonly<Record<string, readonly string[]>>;
  const secrets = { KEY: { env: 'KEY' } };
  const policy = policyFrom({ agents: { attacker: { allow } }, secrets }, '/', { KEY: secret });
  const egress = new Egress(policy, {
    resolve: async (host) => (addresses[host] ?? ['127.0.0.1']).map((address) => ({ address, family: 4 })),
  });
  let opened: (() => Promise<void>)[] = [];
  const settle = async (): Promise<void> => {
    const closing = opened;
    opened = [];
    await Promise.all(closing.map((close) => close()));
  };
  return {
    /** A host that the grant allows: it says welcome. */
    welcomePort,
    /** A proxy without any rules, for the control. On this machine all that it is asked for leads to the secret. */
    proxyPort,
    async egressFor(seat: number): Promise<EgressEndpoint> {
      const grant = policy.agents.attacker as Grant;
      const { endpoint, close } = await egress.open({ matchId: 'attack', seat, agentId: 'attacker' }, grant);
      opened.push(close);
      return endpoint;
    },
    settle,
    async close() {
      await settle();
      egress.close();
      welcome.close();
      careless.close();
    },
  };
}

/** Another attack on the same walls, with a door in them. */
export const withEgress = (attack: Attack): Attack => ({
  ...attack,
  name: `${attack.name}, with egress`,
  egress: true,
});

/** Whoever cannot even reach what it was granted shows nothing about the walls, and ends without an answer. */
const ask = `def say(port, text):
    s = socket.create_connection(("127.0.0.1", port), 4)
    s.sendall(text.encode("latin-1"))
    heard = b""
    while True:
        more = s.recv(4096)
        heard += more
        if not more: return heard.decode("latin-1")
inside = "AGON_EGRESS_SOCKET" in os.environ
if inside and "welcome" not in say(3128, f"GET http://allowed.test:{o['welcomePort']}/ HTTP/1.1\\r\\n\\r\\n"): os._exit(7)
port = 3128 if inside else o["proxyPort"]
`;

const throughProxy = attacksIn((request) =>
  python(`${ask}secret, allowed = o["tcpPort"], o["welcomePort"]\nreturn say(port, f"${request}")`),
);

const line = (method: string, target: string, more = ''): string => `${method} ${target} HTTP/1.1\\r\\n${more}\\r\\n`;

/** For agents in Python that were granted a host, and want another. */
export const egressAttacks: readonly Attack[] = [
  ...throughProxy({
    "the host's loopback by its address": line('GET', 'http://127.0.0.1:{secret}/'),
    "a tunnel to the host's loopback": line('CONNECT', '127.0.0.1:{secret}'),
    'an address in one number': line('GET', 'http://2130706433:{secret}/'),
    'an address in disguise': line('CONNECT', '0x7f.1:{secret}'),
    'a mapped address': line('CONNECT', '[::ffff:127.0.0.1]:{secret}'),
    localhost: line('GET', 'http://localhost:{secret}/'),
    'the metadata of a cloud': line('GET', 'http://169.254.169.254/latest/meta-data/'),
    'a tunnel to the metadata of a cloud': line('CONNECT', 'metadata.google.internal:80'),
    'a name that leads inside': line('GET', 'http://inside.test:{secret}/'),
    'a tunnel to a name that leads inside': line('CONNECT', 'inside.test:{secret}'),
    'a name that leads outside and inside': line('GET', 'http://both.test:{secret}/'),
    'another host': line('CONNECT', 'example.org:443'),
    'another port of an allowed host': line('CONNECT', 'allowed.test:{secret}'),
    'an allowed host as the user of another': line('GET', 'http://allowed.test:{allowed}@127.0.0.1:{secret}/'),
    'an allowed host in the Host header': line('GET', 'http://127.0.0.1:{secret}/', 'Host: allowed.test\\r\\n'),
    'a target without a host': line('GET', '/', 'Host: 127.0.0.1:{secret}\\r\\n'),
    'a file': line('GET', 'file:///etc/passwd'),
    'a request behind a request': `${line('GET', 'http://allowed.test:{allowed}/')}${line('GET', 'http://inside.test:{secret}/')}`,
    'a request in the body of another': `${line('POST', 'http://allowed.test:{allowed}/', 'Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n')}0\\r\\n\\r\\n${line('GET', 'http://inside.test:{secret}/')}`,
    'a line break in the target': line('GET', 'http://allowed.test:{allowed}/\\nHost:127.0.0.1:{secret}'),
  }).map((attack) => ({ ...attack, name: `${attack.name}, through the proxy`, egress: true })),
  ...attacksIn(python)({
    'the secret that the proxy adds': [
      `seen = [repr(dict(os.environ))]
for folder in ("/egress", "/tmp"):
    for name in (os.listdir(folder) if os.path.isdir(folder) else []):
        try: seen.append(open(folder + "/" + name, errors="replace").read())
        except OSError: pass
${ask}
if inside: seen.append(say(port, "TRACE http://keyed.test/ HTTP/1.1\\r\\n\\r\\n"))
return "\\n".join(seen)`,
      { limits: { replyBytes: 1024 * 1024 } },
    ],
    'TCP by fast open':
      's = socket.socket()\ns.sendto(b"x", 0x20000000, ("127.0.0.1", o["tcpPort"]))\nreturn s.recv(100).decode()',
    'TCP over IPv6': 's = socket.create_connection(("::ffff:127.0.0.1", o["tcpPort"]), 2)\nreturn s.recv(100).decode()',
    'a filter on a socket': `import struct
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xffffffff))
socket.socket().setsockopt(socket.SOL_SOCKET, 26, struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))
return True`,
    'passing descriptors': `a, b = socket.socketpair()
socket.send_fds(a, [b"x"], [0])
return len(socket.recv_fds(b, 1, 1)[1]) == 1`,
    'datagrams on the own loopback': 'return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).fileno() > 0',
    'another transport': ['return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).fileno() > 0', ifThere],
    'the crypto of the kernel': ['return socket.socket(38, socket.SOCK_SEQPACKET, 0).fileno() > 0', ifThere],
    'the host of a virtual machine': ['return socket.socket(40, socket.SOCK_STREAM, 0).fileno() > 0', ifThere],
    'raising the loopback of others':
      'import fcntl, struct\nfcntl.ioctl(socket.socket(), 0x8913, struct.pack("16sH14s", b"lo", 0, b""))\nreturn True',
  }).map(withEgress),
];
