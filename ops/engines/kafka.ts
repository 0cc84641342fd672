import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import kafkajs from 'kafkajs';
import { AgonError } from '../../services/kernel/index.js';
import { makeTlsListeners, type TlsListeners } from './kafka-tls.js';
import { freePort, Server } from './server.js';
import { cached, whyMissing } from './tools.js';

/** The same version and place as in kafka.pom.xml and kafka.sh, which put it there. */
const VERSION = '4.3.1';
const JAVA_MIN = 17;
const READY_MS = 60_000;
const POLL_MS = 100;
const HEAP = ['-Xms64m', '-Xmx320m'];
/** Starts in half the time; what the compiler would gain later on, brokers of this size do not need. */
const JVM = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'];

const jars = () => cached(`kafka-${VERSION}`);

/** Why Kafka cannot run here, if it cannot. */
export function whyNoKafka(): string | undefined {
  const missing = whyMissing(jars(), 'kafka.sh puts it there, with Maven');
  if (missing) return missing;
  const { stderr } = spawnSync('java', ['-version'], { encoding: 'utf8' });
  const major = Number(/version "(\d+)/.exec(stderr ?? '')?.[1] ?? 0);
  return major >= JAVA_MIN ? undefined : `Kafka needs Java ${JAVA_MIN} or newer; ops/engines/kafka.sh installs it`;
}

export type Kafka = Awaited<ReturnType<typeof launch>>;

/**
 * Starts Apache Kafka in KRaft mode, every node broker and controller in one, on free ports of loopback. The nodes end
 * with this process, however it ends. Data and logs are in the folder, which is made anew.
 */
export async function startKafka(options: { folder: string; brokers?: 1 | 3; secured?: boolean }): Promise<Kafka> {
  const { folder, brokers: count = 1, secured = false } = options;
  const missing = whyNoKafka();
  if (missing) throw new AgonError('KAFKA.MISSING', `${missing}.`);
  for (let attempt = 1; ; attempt++) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const kafka = await launch(folder, count, secured);
    try {
      await kafka.ready();
      return kafka;
    } catch (error) {
      await kafka.stop();
      // Somebody else may have taken a port between our look and the start.
      if (attempt === 2) throw error;
    }
  }
}

async function launch(folder: string, count: number, secured: boolean) {
  const ports: { client: number; controller: number }[] = [];
  for (let i = 0; i < count; i++) ports.push({ client: await freePort(), controller: await freePort() });
  const voters = ports.map(({ controller }, i) => `${i + 1}@127.0.0.1:${controller}`).join(',');
  const clusterId = randomBytes(16).toString('base64url');
  const tls = secured ? await makeTlsListeners(join(folder, 'tls'), count) : undefined;
  const nodes = await Promise.all(
    ports.map(async ({ client, controller }, i) => {
      const place = { id: i + 1, client, controller, voters, count, tls, folder: join(folder, `node-${i + 1}`) };
      await format(place, clusterId);
      return new Node(place);
    }),
  );
  const brokers = nodes.map(({ address }) => address);
  return {
    /** host:port of every broker. */
    brokers,
    nodes,
    /** Its listeners with TLS, if it was asked for them. */
    secured: tls?.secured,
    /** Resolves when this many brokers are in the cluster and it has a controller. */
    ready: async (wanted = count) => {
      await ready(brokers, wanted, nodes);
      for (const node of nodes) node.keep();
    },
    stop: async () => {
      await Promise.all(nodes.map((node) => node.kill()));
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    },
  };
}

interface Place {
  readonly id: number;
  readonly client: number;
  readonly controller: number;
  readonly voters: string;
  readonly count: number;
  readonly folder: string;
  readonly tls: TlsListeners | undefined;
}

function settings({ id, client, controller, voters, count, folder, tls }: Place): string {
  const replicas = Math.min(3, count);
  const open = [`PLAINTEXT://127.0.0.1:${client}`, ...(tls?.listeners(id - 1) ?? [])].join(',');
  return `${[
    'process.roles=broker,controller',
    `node.id=${id}`,
    `controller.quorum.voters=${voters}`,
    `listeners=${open},CONTROLLER://127.0.0.1:${controller}`,
    `advertised.listeners=${open}`,
    'inter.broker.listener.name=PLAINTEXT',
    'controller.listener.names=CONTROLLER',
    `listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT${tls ? `,${tls.protocols}` : ''}`,
    ...(tls?.settings ?? []),
    `log.dirs=${join(folder, 'data')}`,
    // Topics are made by whoever knows how many partitions and copies they need.
    'auto.create.topics.enable=false',
    `offsets.topic.replication.factor=${replicas}`,
    'offsets.topic.num.partitions=4',
    `transaction.state.log.replication.factor=${replicas}`,
    `transaction.state.log.min.isr=${Math.min(2, replicas)}`,
    'transaction.state.log.num.partitions=4',
    // Ours is one machine: a group need not wait for members that might come, nor for brokers that are far away.
    'group.initial.rebalance.delay.ms=0',
    'broker.session.timeout.ms=6000',
    'broker.heartbeat.interval.ms=1000',
    'log.cleaner.dedupe.buffer.size=8388608',
  ].join('\n')}\n`;
}

const java = (...args: string[]) => [...HEAP, ...JVM, '-cp', join(jars(), '*'), ...args];

async function format(place: Place, clusterId: string): Promise<void> {
  mkdirSync(place.folder, { recursive: true });
  const file = join(place.folder, 'server.properties');
  writeFileSync(file, settings(place));
  const users = place.tls?.format ?? [];
  const args = java('kafka.tools.StorageTool', 'format', `--cluster-id=${clusterId}`, '-c', file, ...users);
  try {
    await promisify(execFile)('java', args);
  } catch (error) {
    throw new AgonError('KAFKA.FAILED', `Kafka's storage could not be made: ${(error as Error).message}`);
  }
}

/**
 * Ends what it started when this process does: then the pipe that the watch reads ends. The watch ends with the child,
 * since later the child's number may be somebody else's.
 */
const GUARD = [
  'java "$@" & child=$!; trap "kill -9 $child" TERM',
  '(read -r _ <&3; kill -9 $child) & watch=$!',
  'wait $child; kill $watch',
].join('\n');

class Node extends Server {
  readonly id: number;
  readonly address: string;
  private readonly log: string;

  constructor({ id, client, folder }: Place) {
    const log = join(folder, 'kafka.log');
    super(() => spawnNode(log, java('kafka.Kafka', join(folder, 'server.properties'))));
    this.id = id;
    this.address = `127.0.0.1:${client}`;
    this.log = log;
  }

  /** The end of what it said last, for errors. */
  lastWords(): string {
    return readFileSync(this.log, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
  }

  /** As a crash would: at once, and nothing is written down. It is away until it is started again. */
  override kill(): Promise<void> {
    return this.stop();
  }
}

function spawnNode(logFile: string, args: readonly string[]): ChildProcess {
  const log = openSync(logFile, 'a');
  const child = spawn('bash', ['-c', GUARD, 'kafka', ...args], { stdio: ['ignore', log, log, 'pipe'] });
  closeSync(log);
  return child;
}

async function ready(brokers: readonly string[], wanted: number, nodes: readonly Node[]): Promise<void> {
  const client = new kafkajs.Kafka({
    brokers: [...brokers],
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { retries: 0 },
  });
  for (const since = performance.now(); performance.now() - since < READY_MS; ) {
    const dead = nodes.filter((node) => !node.running);
    if (nodes.length - dead.length < wanted) {
      throw new AgonError('KAFKA.FAILED', `Kafka ended while it started: ${dead[0]?.lastWords()}`);
    }
    const admin = client.admin();
    try {
      await admin.connect();
      const cluster = await admin.describeCluster();
      if (cluster.brokers.length >= wanted && cluster.controller !== null) return;
    } catch {
      // Not yet.
    } finally {
      await admin.disconnect().catch(() => {});
    }
    await sleep(POLL_MS);
  }
  throw new AgonError('KAFKA.FAILED', `Kafka is not ready after ${READY_MS / 1000} s: ${nodes[0]?.lastWords()}`);
}
