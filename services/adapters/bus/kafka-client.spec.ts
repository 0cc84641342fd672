import type { Admin } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { randomIds } from '../../kernel/index.js';
import { KafkaClient, type KafkaOptions } from './kafka-client.js';
import { deadLettersOf } from './message.js';

interface Entry {
  readonly name: string;
  readonly value: string;
}

/** A Kafka of so many brokers that only says what there is. */
function kafkaWith(brokers: number, options: Partial<KafkaOptions> = {}, leader = 1) {
  const made: { topic: string; replicationFactor?: number; numPartitions?: number; configEntries?: Entry[] }[] = [];
  const admin = {
    listTopics: async () => made.map(({ topic }) => topic),
    describeCluster: async () => ({ brokers: Array.from({ length: brokers }) }),
    createTopics: async ({ topics }: { topics: typeof made }) => void made.push(...topics),
    fetchTopicMetadata: async ({ topics }: { topics: string[] }) => ({
      topics: topics.map((name) => ({ name, partitions: [{ leader }] })),
    }),
  } as unknown as Admin;
  const client = new KafkaClient({ brokers: ['127.0.0.1:1'], ids: randomIds, ...options });
  Object.assign(client, { asAdmin: (ask: (admin: Admin) => unknown) => ask(admin) });
  return { client, made };
}

describe('the topics on Kafka', () => {
  it.each([
    [1, undefined, 1],
    [3, undefined, 3],
    [5, undefined, 3],
    [3, 2, 2],
  ])('with %i brokers and %s asked for have %i copies', async (brokers, replication, copies) => {
    const { client, made } = kafkaWith(brokers, { partitions: 7, ...(replication ? { replication } : {}) });
    await client.ensureTopics();
    expect(new Set(made.map(({ replicationFactor }) => replicationFactor))).toEqual(new Set([copies]));
    expect(new Set(made.map(({ numPartitions }) => numPartitions))).toEqual(new Set([7, 1]));
  });

  it('of events forget nothing, whatever the brokers do by default', async () => {
    const { client, made } = kafkaWith(3);
    await client.ensureTopics();
    const settings = (name: string) =>
      Object.fromEntries(
        made.find(({ topic }) => topic === name)?.configEntries?.map((one) => [one.name, one.value]) ?? [],
      );
    const forever = { 'retention.ms': '-1', 'retention.bytes': '-1', 'min.insync.replicas': '2' };
    for (const name of [...client.topics.events, client.topics.watermark]) {
      expect(settings(name)).toMatchObject({ ...forever, 'cleanup.policy': 'delete' });
    }
    // Dead letters are kept one by one, until they are replayed.
    for (const name of client.topics.events) {
      expect(settings(deadLettersOf(name))).toMatchObject({ ...forever, 'cleanup.policy': 'compact' });
    }
  });

  it('are not made with fewer copies than were asked for, and go on when they are there', async () => {
    const early = kafkaWith(2, { replication: 3 });
    await expect(early.client.ensureTopics()).rejects.toMatchObject({ code: 'BUS.TOO_FEW_BROKERS' });
    expect(early.made).toEqual([]);
    const later = kafkaWith(3, { replication: 3 });
    await later.client.ensureTopics();
    const fewer = kafkaWith(2, { replication: 3 });
    fewer.made.push(...later.made);
    await fewer.client.ensureTopics();
  });

  it('that stay without a leader are told of, and not waited for without end', async () => {
    const { client } = kafkaWith(1, { leadersMs: 200 }, -1);
    await expect(client.ensureTopics()).rejects.toMatchObject({ code: 'BUS.NO_LEADER' });
  });

  it('are no longer waited for by who is told to stop', async () => {
    const { client } = kafkaWith(1, {}, -1);
    await expect(client.ensureTopics(AbortSignal.timeout(50))).rejects.toMatchObject({ name: 'AbortError' });
  });
});
