import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ownCertificate } from '../../../gateway/eventstore/certificate.js';
import { whyNoKafka } from '../../../ops/engines/kafka.js';
import type { SecuredKafka } from '../../../ops/engines/kafka-tls.js';
import { ownName, sharedKafka } from '../../../ops/engines/shared.contract.js';
import { chain } from '../../kernel/fixtures.js';
import { NO_STREAM, randomIds } from '../../kernel/index.js';
import { parseConfig } from '../../runtime/settings.js';
import { MemoryLease } from '../lease.js';
import { MemoryEventStore } from '../store/memory.js';
import { MemoryCheckpoints } from './checkpoints.js';
import { KafkaBus } from './kafka.js';
import { KafkaClient, type KafkaOptions } from './kafka-client.js';
import { startKafkaRelay } from './kafka-relay.js';
import { securityOf } from './kafka-security.js';
import { Topics } from './message.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-kafka-security-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const missing = whyNoKafka();
if (missing) {
  describe('the bus on a secured Kafka', () => {
    it('runs by TLS and SASL', (context) => context.skip(`${missing}.`));
  });
} else {
  let kafka: Awaited<ReturnType<typeof sharedKafka>>;
  let listeners: SecuredKafka;

  const user = (mechanism: string) => ({
    AGON_KAFKA_SASL: mechanism,
    AGON_KAFKA_USER: listeners.user,
    AGON_KAFKA_PASSWORD: listeners.password,
  });
  const ca = () => ({ AGON_KAFKA_CA: listeners.ca });
  const own = () => ({ AGON_KAFKA_CERT: listeners.cert, AGON_KAFKA_KEY: listeners.key });
  const optionsOf = (brokers: readonly string[], env: Record<string, string>): KafkaOptions => ({
    brokers,
    security: securityOf(parseConfig({}, env), brokers),
    topics: new Topics(ownName('secured')),
    partitions: 1,
    ids: randomIds,
  });

  describe('the bus on a secured Kafka', () => {
    beforeAll(async () => {
      kafka = await sharedKafka();
      listeners = kafka.secured;
    });

    it.each<[string, () => KafkaOptions]>([
      ['TLS and PLAIN', () => optionsOf(listeners.sasl, { ...ca(), ...user('plain') })],
      ['TLS and SCRAM-SHA-256', () => optionsOf(listeners.sasl, { ...ca(), ...user('scram-sha-256') })],
      ['TLS and SCRAM-SHA-512', () => optionsOf(listeners.sasl, { ...ca(), ...user('scram-sha-512') })],
      ['mutual TLS', () => optionsOf(listeners.mutual, { ...ca(), ...own() })],
    ])('carries events by %s', async (_how, options) => {
      const arena = options();
      const store = new MemoryEventStore();
      await store.append('wallet-a', NO_STREAM, chain('wallet-a', 3));
      const relay = startKafkaRelay({ store, kafka: arena, lease: new MemoryLease() });
      const bus = new KafkaBus(arena, new MemoryCheckpoints());
      const seen: number[] = [];
      const consumer = await bus.consume({ group: 'g' }, async (events) => {
        seen.push(...events.map(({ position }) => position));
      });
      while (consumer.position() < 3) await sleep(20);
      expect(seen).toEqual([1, 2, 3]);
      await bus.close();
      await relay.stop();
    });

    const stranger = () => {
      ownCertificate(join(folder, 'stranger.crt'), join(folder, 'stranger.key'), '127.0.0.1', Date.now());
      return { AGON_KAFKA_CERT: join(folder, 'stranger.crt'), AGON_KAFKA_KEY: join(folder, 'stranger.key') };
    };
    it.each<[string, () => [readonly string[], Record<string, string>], string, RegExp]>([
      [
        'a wrong password by PLAIN',
        () => [listeners.sasl, { ...ca(), ...user('plain'), AGON_KAFKA_PASSWORD: 'hidden' }],
        'BUS.CREDENTIALS',
        /does not let agon in: .*Check AGON_KAFKA_USER, AGON_KAFKA_PASSWORD/,
      ],
      [
        'a wrong password by SCRAM',
        () => [listeners.sasl, { ...ca(), ...user('scram-sha-512'), AGON_KAFKA_PASSWORD: 'hidden' }],
        'BUS.CREDENTIALS',
        /does not let agon in/,
      ],
      ['no user', () => [listeners.sasl, ca()], 'BUS.CREDENTIALS', /wants a user: set AGON_KAFKA_SASL/],
      ['a user where none is wanted', () => [kafka.brokers, user('plain')], 'BUS.CREDENTIALS', /wants no user/],
      ['no certificate', () => [listeners.mutual, ca()], 'BUS.CREDENTIALS', /wants a certificate of its clients/],
      [
        "a stranger's certificate",
        () => [listeners.mutual, { ...ca(), ...stranger() }],
        'BUS.CREDENTIALS',
        /does not accept this client's certificate. AGON_KAFKA_CERT/,
      ],
      [
        'an authority that nobody named',
        () => [listeners.sasl, { AGON_KAFKA_TLS: 'on', ...user('plain') }],
        'BUS.UNTRUSTED',
        /AGON_KAFKA_CA has to name/,
      ],
      [
        'the wrong authority',
        () => [listeners.sasl, { AGON_KAFKA_CA: listeners.cert, ...user('plain') }],
        'BUS.UNTRUSTED',
        /self-signed certificate/,
      ],
      ['a TLS port, in clear', () => [listeners.sasl, {}], 'BUS.TLS', /speaks TLS at this port. Set AGON_KAFKA_TLS=on/],
      ['a plain port, by TLS', () => [kafka.brokers, ca()], 'BUS.TLS', /does not speak TLS at this port/],
      ['nobody at all', () => [['127.0.0.1:1'], ca()], 'BUS.UNREACHABLE', /Is it running there/],
    ])('says clearly what is wrong with %s', async (_what, how, code, message) => {
      const client = new KafkaClient(optionsOf(...how()));
      const error = await client.ensureTopics().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
      expect(inspect(error, { depth: 9 })).not.toMatch(new RegExp(`hidden|${listeners.password}`));
      await client.close();
    });
  });
}
