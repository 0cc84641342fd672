import { AgonError, type EventMeta, type RecordedEvent, spanIdOf, traceIdOf } from '../../kernel/index.js';

/** Which context owns a stream, by what its name begins with. Other streams share a topic of their own. */
const CONTEXTS: Readonly<Record<string, string>> = {
  account: 'accounts',
  agent: 'agents',
  match: 'arena',
  wallet: 'wallet',
  payments: 'payments',
  runner: 'runners',
  session: 'sessions',
  webhooks: 'webhooks',
};
const OTHER = 'other';

/** The names of the topics. A prefix of its own keeps two arenas apart on one Kafka. */
export class Topics {
  readonly watermark: string;
  readonly replay: string;
  /** Those that carry events. */
  readonly events: readonly string[];

  constructor(
    readonly prefix = 'agon',
    private readonly contexts: Readonly<Record<string, string>> = CONTEXTS,
  ) {
    this.watermark = `${prefix}.watermark.v1`;
    this.replay = `${prefix}.replay.v1`;
    this.events = [...new Set([...Object.values(contexts), OTHER])].map((context) => this.named(context));
  }

  contextOf(stream: string): string {
    return this.contexts[stream.slice(0, stream.indexOf('-'))] ?? OTHER;
  }

  of(stream: string): string {
    return this.named(this.contextOf(stream));
  }

  private named(context: string): string {
    return `${this.prefix}.${context}.events.v1`;
  }
}

export const deadLettersOf = (topic: string): string => `${topic}-dlt`;

/** What a record of Kafka holds, as far as we care. */
export interface Message {
  readonly key?: Buffer | string | null;
  readonly value: Buffer | string | null;
  readonly headers?: Readonly<Record<string, Buffer | string | (Buffer | string)[] | undefined>>;
}

/**
 * An event as a CloudEvent in Kafka's binary mode: the data is the value, and everything else is in the headers. What
 * CloudEvents has no attribute for is an extension, so that a reader in any language can check the hash.
 */
export function encodeEvent(event: RecordedEvent, source: string) {
  return {
    key: event.stream,
    value: JSON.stringify(event.data),
    headers: {
      'content-type': 'application/json',
      ce_specversion: '1.0',
      ce_id: event.id,
      ce_type: event.type,
      ce_source: source,
      ce_subject: event.stream,
      ce_time: event.time,
      ce_dataversion: `${event.version}`,
      ce_revision: `${event.revision}`,
      ce_position: `${event.position}`,
      ce_meta: JSON.stringify(event.meta),
      ce_prevhash: event.prevHash,
      ce_hash: event.hash,
      // Where the trace of it stands once it is recorded: whoever reads it in another system goes on from there.
      traceparent: `00-${traceIdOf(event.meta.correlationId)}-${spanIdOf(event.id)}-01`,
    },
  };
}

export function decodeEvent(message: Message): RecordedEvent {
  return {
    id: headerOf(message, 'ce_id'),
    type: headerOf(message, 'ce_type'),
    version: Number(headerOf(message, 'ce_dataversion')),
    stream: headerOf(message, 'ce_subject'),
    revision: Number(headerOf(message, 'ce_revision')),
    time: headerOf(message, 'ce_time'),
    data: JSON.parse(`${message.value}`),
    meta: JSON.parse(headerOf(message, 'ce_meta')) as EventMeta,
    prevHash: headerOf(message, 'ce_prevhash'),
    hash: headerOf(message, 'ce_hash'),
    position: positionOf(message),
  };
}

export const typeOf = (message: Message): string => headerOf(message, 'ce_type');
export const positionOf = (message: Message): number => Number(headerOf(message, 'ce_position'));

export function headerOf(message: Message, name: string): string {
  const value = message.headers?.[name];
  if (value === undefined) {
    throw new AgonError(
      'BUS.NOT_AN_EVENT',
      `A record without the header ${name} is no event of Agon: something else writes to its topics.`,
    );
  }
  return value.toString();
}

/** A run of records that were written together: topic, partition, offset of the first, and how many. */
export type Range = readonly [topic: string, partition: number, offset: number, count: number];

/**
 * What the relay says at the end of each of its transactions: every event beyond `after` up to `position` is in Kafka,
 * and here is where. Order across partitions is found again with it, and it is also how far the relay has come.
 */
export interface Watermark {
  readonly after: number;
  readonly position: number;
  readonly ranges: readonly Range[];
}

export const encodeWatermark = (watermark: Watermark) => ({
  key: 'watermark',
  value: JSON.stringify(watermark),
  headers: { ce_position: `${watermark.position}` },
});

export const decodeWatermark = ({ value }: Message): Watermark => JSON.parse(`${value}`) as Watermark;
