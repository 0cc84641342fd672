import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgonError } from '../../services/kernel/index.js';
import { root } from '../paths.js';
import type { EgressEndpoint } from './driver.js';
import type { Runtime } from './runtimes.js';

/** The sandbox has a network namespace of its own, so that the port is free in every one of them. */
const proxyUrl = 'http://127.0.0.1:3128';
const socketInside = '/egress/proxy.sock';
const authoritiesInside = '/egress/authorities.pem';

const relays: Readonly<Record<string, string>> = { python: 'egress.py', node: 'egress.js' };

/** Where the two files of an endpoint are seen inside: pairs of a path outside and one inside. */
export const filesInside = (endpoint: EgressEndpoint): readonly (readonly [from: string, to: string])[] => [
  [endpoint.socket, socketInside],
  [endpoint.authorities, authoritiesInside],
];

/** Names that libraries look for: Python's, Node's, curl's, and those of `requests`. */
const environment = {
  ...Object.fromEntries(['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map((name) => [name, proxyUrl])),
  ...Object.fromEntries(
    ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS'].map((n) => [n, authoritiesInside]),
  ),
  NO_PROXY: '127.0.0.1,localhost',
  no_proxy: '127.0.0.1,localhost',
  AGON_EGRESS_SOCKET: socketInside,
};

/**
 * The runtime with a relay in front of its shim: it listens on the loopback device inside, and carries every connection
 * to the socket of the proxy. Like the shim it is trusted with nothing; the proxy judges whatever arrives.
 */
export function withRelay(runtime: Runtime): Runtime {
  const [code, flag, ...before] = [...runtime.command].reverse();
  const file = relays[runtime.name];
  if (file === undefined || code === undefined || (flag !== '-c' && flag !== '-e')) {
    const message = `process/${runtime.name} has no relay to the egress proxy; Python and Node have one.`;
    throw new AgonError('EGRESS.NOT_WITH_DRIVER', message, { driver: `process/${runtime.name}` });
  }
  const relay = readFileSync(join(root, 'sandbox-runner', 'drivers', 'shims', file), 'utf8');
  return {
    ...runtime,
    command: [...before.reverse(), flag, `${relay}\n${code}`],
    environment: { ...runtime.environment, ...environment },
  };
}
