import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordedEvent } from '../../kernel/index.js';

/** A record as Kafka had it, with its bytes as text. */
export interface GoldenRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * What the relay of commit 1743556 published of a log, record by record, as a plain consumer read it from Kafka, and the
 * dead letter of a group. It is never made again: topics that people have are not, either.
 */
export const golden = JSON.parse(readFileSync(join(import.meta.dirname, 'golden', 'kafka.json'), 'utf8')) as {
  readonly prefix: string;
  readonly partitions: number;
  readonly records: readonly GoldenRecord[];
  readonly events: readonly RecordedEvent[];
};

export const goldenOf = (topics: RegExp) => golden.records.filter(({ topic }) => topics.test(topic));
