import { BlockList, isIP } from 'node:net';
import { AgonError } from '../../services/kernel/index.js';
import type { Grant, Rule } from './policy.js';

/** What an agent asks for, as far as the proxy can see: of a tunnel it sees no more than where it leads. */
export interface RequestTarget {
  readonly host: string;
  readonly port: number;
  readonly tunnel: boolean;
  readonly secure: boolean;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
}

/** Why the proxy does not do what it was asked to; `status` is what the agent gets to see of it. */
export class Refusal extends AgonError {
  constructor(
    code: string,
    readonly status: number,
    message: string,
  ) {
    super(`EGRESS.${code}`, message);
  }
}

const refuse = (code: string, message: string): Refusal => new Refusal(code, 403, message);

const badTarget = (text: string): Refusal =>
  new Refusal('BAD_REQUEST', 400, `${JSON.stringify(text.slice(0, 200))} is no target of a request to a proxy.`);

/**
 * Reads the target of a request: `host:port` of a CONNECT, or the absolute address of any other. The parser is the one
 * that browsers use, so an address in disguise (0x7f.1, 2130706433) shows itself as one.
 */
export function wantedOf(method: string, target: string): RequestTarget {
  const tunnel = method === 'CONNECT';
  if (tunnel ? !/^[^/?#@\\\s]+:\d{1,5}$/.test(target) : !/^https?:\/\/[^/?#@\\\s]+([/?]|$)/i.test(target)) {
    throw badTarget(target);
  }
  let url: URL;
  try {
    url = new URL(tunnel ? `https://${target}` : target);
  } catch {
    throw badTarget(target);
  }
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/\.$/, '');
  const port = Number(url.port || (secure ? 443 : 80));
  return { host, port, tunnel, secure, method, path: tunnel ? '' : url.pathname };
}

const fits = (rule: Rule, host: string): boolean =>
  rule.host.startsWith('*.') ? host.endsWith(rule.host.slice(1)) : host === rule.host;

/** A request in the clear that is to be upgraded may leave the port out, since the rule has it. */
const atPort = (rule: Rule, { port, secure }: RequestTarget): boolean =>
  port === rule.port || (rule.upgrade === 'https' && !secure && port === 80);

/** A prefix ends where a part of the path ends: /v1 is the start of /v1/chat, and not of /v10. */
const below = (prefix: string, path: string): boolean =>
  path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`);

/** Dots are resolved by the parser; a slash or a dot in disguise could mean another path to the upstream. */
const disguised = /%(2e|2f|5c)|\\|\/\//i;

const onlyPlain = ({ methods, paths, upgrade }: Rule): boolean =>
  methods !== undefined || paths !== undefined || upgrade !== undefined;

/** The rule that lets a request through, or the reason why none does. The reasons are asked for in this order. */
export function ruleFor({ allow }: Grant, wanted: RequestTarget): Rule {
  const { host, port, tunnel, method, path, secure } = wanted;
  if (isIP(host.replace(/^\[|\]$/g, '')) > 0)
    throw refuse('ADDRESS_REFUSED', `${host} is an address; ask for a host by its name.`);
  const steps: readonly (readonly [code: string, reason: string, keeps: (rule: Rule) => boolean])[] = [
    ['HOST_REFUSED', `${host} is not among the hosts that this agent may reach`, (rule) => fits(rule, host)],
    ['PORT_REFUSED', `port ${port} of ${host} is not allowed`, (rule) => atPort(rule, wanted)],
    tunnel
      ? [
          'TUNNEL_REFUSED',
          `${host} is allowed for plain requests only, which the proxy can read`,
          (rule) => !onlyPlain(rule),
        ]
      : ['SCHEME_REFUSED', `${host} takes a tunnel for TLS`, (rule) => !secure || rule.upgrade === 'https'],
    [
      'METHOD_REFUSED',
      `${method} is not allowed for ${host}`,
      (rule) => tunnel || (rule.methods?.includes(method) ?? true),
    ],
    [
      'PATH_REFUSED',
      `the path is not among those that are allowed for ${host}`,
      (rule) =>
        tunnel ||
        rule.paths === undefined ||
        (!disguised.test(path) && rule.paths.some((prefix) => below(prefix, path))),
    ],
  ];
  let left = allow;
  for (const [code, reason, keeps] of steps) {
    left = left.filter(keeps);
    if (left.length === 0) throw refuse(code, `${reason}.`);
  }
  return left[0] as Rule;
}

interface Address {
  readonly address: string;
  readonly family: number;
}

/** Names to addresses; the proxy asks once for each request, and connects to what it was told then. */
export type Resolve = (host: string) => Promise<readonly Address[]>;

const listOf = (subnets: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', bits] = subnet.split('/');
    list.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
};

/** Places of one's own network: what `allowPrivate` opens. */
const own = listOf(['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '::1/128', 'fc00::/7']);
/** Where clouds keep their metadata, inside of what is otherwise one's own network. */
const metadata = listOf(['fd00:ec2::254/128', 'fd20:ce::254/128']);
/** Of the old address space, all that IANA keeps for something else than hosts of the internet. */
const special4 = listOf([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '168.63.129.16/32',
  '224.0.0.0/4',
  '240.0.0.0/4',
]);
/** Of the new one only 2000::/3 is given out (no ::ffff:127.0.0.1); in it, these carry old addresses or lead nowhere. */
const global6 = listOf(['2000::/3']);
const special6 = listOf(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** @example isReachable('169.254.169.254', false) // false: what a cloud tells its machines is not for agents */
export function isReachable(address: string, allowPrivate: boolean): boolean {
  const version = isIP(address);
  if (version === 0) return false;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  if (metadata.check(address, family)) return false;
  if (allowPrivate && own.check(address, family)) return true;
  return family === 'ipv4'
    ? !special4.check(address, family)
    : global6.check(address, family) && !special6.check(address, family);
}

/**
 * The address to connect to. All that a name stands for has to be reachable: a name that also leads inside is not to be
 * trusted with which of its addresses it gives next time.
 */
export async function addressOf(host: string, allowPrivate: boolean, resolve: Resolve): Promise<Address> {
  const found = await resolve(host).catch(() => []);
  const [first] = found;
  if (first === undefined) throw new Refusal('NOT_RESOLVED', 502, `${host} has no address.`);
  if (!found.every(({ address }) => isReachable(address, allowPrivate))) {
    throw refuse('PRIVATE_ADDRESS', `${host} leads to an address that is not of the public internet.`);
  }
  return first;
}
