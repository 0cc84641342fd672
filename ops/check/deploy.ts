import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { asAgonError } from '../../services/kernel/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { environmentNames, parseConfig } from '../../services/runtime/settings.js';
import { processNames } from '../run/names.js';

type Environment = Readonly<Record<string, string>>;

interface Service {
  readonly image?: string;
  readonly build?: { readonly target?: string };
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly ports?: readonly string[];
  readonly expose?: readonly string[];
  readonly networks?: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly profiles?: readonly string[];
  readonly healthcheck?: unknown;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly privileged?: boolean;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, unknown>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
}

/** Long enough for every token, and made of what may stand in an address. */
export const PLACEHOLDER = 'chosen_0123456789abcdef';

/** The file with a value for every variable: its default, or something for those that have to be chosen. */
export const filledIn = (text: string): string =>
  text.replace(/(?<!\$)\$\{\w+:(?:-([^}]*)|\?[^}]*)\}/g, (_, byDefault?: string) => byDefault ?? PLACEHOLDER);

/** A version down to the last number (PostgreSQL has two), so that the same file means the same image tomorrow. */
export const isPinned = (image: string): boolean =>
  /^[\w./-]+:v?\d+\.\d+(\.\d+)+(-[\w.-]+)?$/.test(image) || /^postgres:\d+\.\d+(-[\w-]+)?$/.test(image);

/** What is wrong with how the cluster is described for Docker; empty when nothing. */
export function composeFaults(file: { compose: string; dockerfile: string; example: string }): string[] {
  const compose = parse(filledIn(file.compose), { merge: true }) as Compose;
  const services = Object.entries(compose.services);
  const targets = [...file.dockerfile.matchAll(/^FROM \S+ AS (\w+)$/gm)].map(([, name]) => name);
  const chosen = new Set([...file.compose.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name ?? ''));
  return [
    ...[...chosen]
      .filter((name) => !new RegExp(`^${name}=$`, 'm').test(file.example))
      .map((name) => `.env.example lacks ${name}`),
    ...processFaults(services.map(([, { command = [] }]) => command)),
    ...secretFaults(services.map(([name, { command = [], volumes = [] }]) => ({ name, command, mounts: volumes }))),
    ...services.flatMap(([name, service]) =>
      [
        ...imageFaults(service, targets),
        ...referenceFaults(service, compose),
        ...(service.command?.[0] === 'run' ? agonFaults(service, compose) : []),
      ].map((fault) => `${name}: ${fault}`),
    ),
  ];
}

/** Every process is there, and nothing is run that is none. */
export function processFaults(commands: readonly (readonly string[])[]): string[] {
  const run = new Set(commands.filter(([first]) => first === 'run').flatMap((command) => command.slice(1)));
  return [
    ...processNames.filter((name) => !run.has(name)).map((name) => `nobody runs ${name}`),
    ...[...run]
      .filter((name) => !processNames.some((known) => known === name))
      .map((name) => `there is no process ${name}`),
  ];
}

const DATA = '/var/lib/agon';

/** What gateways keep about people and sign with is theirs: whoever else mounts it could be anybody. */
export function secretFaults(
  workloads: readonly { name: string; command: readonly string[]; mounts: readonly string[] }[],
): string[] {
  const isGateway = (command: readonly string[]) => command.join(' ') === 'run gateway';
  const sources = (mounts: readonly string[], at?: string) =>
    mounts.map((mount) => mount.split(':')).flatMap(([from = '', to]) => (at === undefined || to === at ? [from] : []));
  const gateways = workloads.filter(({ command }) => isGateway(command));
  const secret = new Set(gateways.flatMap(({ mounts }) => sources(mounts, DATA)));
  return [
    ...gateways
      .filter(({ mounts }) => sources(mounts, DATA).length === 0)
      .map(({ name }) => `${name}: what it signs with is on no volume`),
    ...workloads
      .filter(({ command }) => !isGateway(command))
      .flatMap(({ name, mounts }) => sources(mounts).map((source) => ({ name, source })))
      .filter(({ source }) => secret.has(source))
      .map(({ name, source }) => `${name}: it mounts ${source}, which is for gateways alone`),
  ];
}

function imageFaults({ image, build }: Service, targets: readonly (string | undefined)[]): string[] {
  const pinned = image !== undefined && isPinned(image);
  const known = build === undefined || targets.includes(build.target);
  return [
    ...(pinned ? [] : [`the image ${image} is not pinned by a whole version`]),
    ...(known ? [] : [`the Dockerfile has no target ${build?.target}`]),
  ];
}

function referenceFaults(service: Service, { services, networks, volumes, secrets }: Compose): string[] {
  const { depends_on: needs = {}, volumes: mounts = [] } = service;
  const named = mounts.map((mount) => mount.split(':')[0] ?? '');
  const unknown = (what: string, names: readonly string[], among: object) =>
    names.filter((name) => !Object.hasOwn(among, name)).map((name) => `there is no ${what} ${name}`);
  return [
    ...unknown('service', Object.keys(needs), services),
    ...unknown('network', service.networks ?? [], networks),
    ...unknown('secret', service.secrets ?? [], secrets),
    ...unknown(
      'volume',
      named.filter((source) => !source.startsWith('.')),
      volumes,
    ),
    ...named
      .filter((source) => source.startsWith('.') && !existsSync(join(packageRoot, source)))
      .map((source) => `there is no ${source} to mount`),
    ...Object.entries(needs)
      .filter(([name, { condition }]) => condition === 'service_healthy' && !services[name]?.healthcheck)
      .map(([name]) => `it waits for the health of ${name}, which does not tell`),
    ...(service.profiles?.length ? [] : ['it belongs to no profile']),
  ];
}

function agonFaults(service: Service, compose: Compose): string[] {
  const { ports = [], expose = [] } = service;
  // Compose takes the values before it reads the YAML's types: what is empty then is text.
  const values = Object.entries(service.environment ?? {}).map(([name, value]) => [name, value ?? ''] as const);
  const environment: Environment = Object.fromEntries(values);
  const open = [...ports.map((mapping) => mapping.split(':').at(-1) ?? ''), ...expose];
  return [
    ...processEnvironmentFaults(service.command ?? [], environment, open),
    ...addressFaults(environment, service, compose),
    ...(service.read_only && service.cap_drop?.includes('ALL') && !service.privileged
      ? []
      : ['it has more rights than it needs']),
  ];
}

/**
 * Names that are settings, and values that the configuration takes as they stand; the process is told of everything that
 * it needs, be it empty until somebody chooses, and every port that is named is one that it was told to listen on.
 */
export function processEnvironmentFaults(
  [, ...run]: readonly string[],
  environment: Environment,
  ports: readonly string[],
): string[] {
  const names = Object.keys(environment);
  const needed = processNames.filter((name) => run.includes(name)).flatMap((name) => NEEDS[name]);
  const told = names.filter((name) => name.endsWith('_PORT')).map((name) => environment[name]);
  return [
    ...names.filter((name) => !environmentNames.includes(name)).map((name) => `${name} is no setting of Agon`),
    ...refusalOf(environment),
    ...needed.filter((setting) => !names.includes(setting)).map((setting) => `it is not told ${setting}`),
    ...ports.filter((port) => !told.includes(port)).map((port) => `nothing is configured to listen on port ${port}`),
    ...(environment.AGON_HEALTH_PORT ? [] : ['AGON_HEALTH_PORT is not set: nobody could ask how it is']),
  ];
}

function refusalOf(environment: Environment): string[] {
  try {
    parseConfig({}, environment);
    return [];
  } catch (error) {
    return [asAgonError(error).message];
  }
}

const BUS = ['AGON_STORE', 'KAFKA_BROKERS'];
const SERVICE = [...BUS, 'DATABASE_URL'];

/** What a process waits for in vain, or refuses to start without, when nobody tells it where it is. */
const NEEDS: Readonly<Record<(typeof processNames)[number], readonly string[]>> = {
  eventstore: ['AGON_EVENTSTORE_PORT', 'AGON_EVENTSTORE_CERT', 'AGON_EVENTSTORE_KEY', 'AGON_OPERATOR_TOKEN'],
  relay: [...BUS, 'REDIS_URL'],
  // Tokens that all gateways, the arena and the endpoint for agents have to know, and no folder that they share.
  gateway: ['AGON_STORE', 'DATABASE_URL', 'REDIS_URL', 'AGON_OPERATOR_TOKEN', 'AGON_RUNNER_TOKEN', 'CLICKHOUSE_URL'],
  // Turns are told to spectators through Redis.
  arena: [...SERVICE, 'REDIS_URL', 'AGON_OPERATOR_TOKEN', 'AGON_RUNNER_TOKEN'],
  play: [...SERVICE, 'REDIS_URL', 'AGON_OPERATOR_TOKEN', 'AGON_RUNNER_TOKEN'],
  wallet: SERVICE,
  payments: SERVICE,
  projections: [...SERVICE, 'REDIS_URL'],
  analytics: ['AGON_STORE', 'CLICKHOUSE_URL'],
  runner: ['AGON_ARENA', 'AGON_RUNNER_TOKEN'],
};

const ENGINES = ['AGON_STORE', 'KAFKA_BROKERS', 'DATABASE_URL', 'REDIS_URL', 'CLICKHOUSE_URL', 'AGON_ARENA'];

/** Whoever is spoken to is a service that is open there, on a network that both are on. */
function addressFaults(environment: Environment, { networks = [] }: Service, { services }: Compose): string[] {
  return ENGINES.flatMap((name) => {
    const addresses = (environment[name] ?? '').matchAll(/(?:^|[,@/])([a-z][\w-]*):(\d+)/g);
    return [...addresses].flatMap(([, host = '', port = '']) => {
      const other = services[host];
      if (!other?.expose?.includes(port)) return [`${name} names ${host}:${port}, where nobody is`];
      const meets = other.networks?.some((network) => networks.includes(network));
      return meets ? [] : [`${host} cannot be reached from here`];
    });
  });
}
