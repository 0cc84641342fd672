import { Redis } from 'ioredis';
import pg from 'pg';
import { inject } from 'vitest';
import type { SecuredKafka } from './kafka-tls.js';

async function addressOf<T>(engine: string): Promise<T> {
  const response = await fetch(`${inject('engines')}/${engine}`);
  const body = (await response.json()) as T & { message?: string };
  if (!response.ok) throw new Error(`The shared ${engine} did not start: ${body.message}`);
  return body;
}

let names = 0;
/** A name that no other spec of this run has. */
export const ownName = (what: string): string => `${what}-${process.pid}-${names++}`;

export interface OwnDatabase {
  readonly url: string;
  /** Forgets it, whoever is still connected. */
  drop(): Promise<void>;
}

/** An empty database on the PostgreSQL of this run. */
export async function ownDatabase(): Promise<OwnDatabase> {
  const { url } = await addressOf<{ url: string }>('postgres');
  const name = ownName('spec').replaceAll('-', '_');
  const admin = async (statement: string) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(statement).finally(() => client.end());
  };
  await admin(`CREATE DATABASE ${name}`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return { url: own.href, drop: () => admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

export interface OwnRedis {
  readonly url: string;
  /** A connection of its own; ended by `close`. */
  connect(): Redis;
  close(): void;
}

/** An empty database of the Redis of this run. `flushdb` is the file's own business, `flushall` is not. */
export async function ownRedis(): Promise<OwnRedis> {
  const { url } = await addressOf<{ url: string }>('redis');
  const connections: Redis[] = [];
  return {
    url,
    connect() {
      const redis = new Redis(url, { maxRetriesPerRequest: null });
      connections.push(redis);
      return redis;
    },
    close: () => {
      for (const redis of connections) redis.disconnect();
    },
  };
}

/** The Kafka of this run, in clear and secured. Topics and groups are kept apart by a prefix: `ownName`. */
export const sharedKafka = (): Promise<{ readonly brokers: readonly string[]; readonly secured: SecuredKafka }> =>
  addressOf('kafka');
