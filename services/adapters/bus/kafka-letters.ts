import { AgonError, type Checkpoints, type DeadLetter, type EventStore } from '../../kernel/index.js';
import type { DeadLetterFilter, DeadLetters } from '../../runtime/engines.js';
import { inTransaction, KafkaClient, type KafkaOptions } from './kafka-client.js';
import { deadLettersOf, encodeEvent, headerOf, type Message, positionOf } from './message.js';

/** A dead letter as Kafka keeps it: what was put aside, by whom, why, and where it stood. */
export interface KafkaLetter extends DeadLetter {
  readonly type: string;
  readonly stream: string;
  readonly origin: { readonly topic: string; readonly partition: number; readonly offset: string };
}

/** The record as it was, with the error and its place in headers. Its key is the group's own: replaying it deletes it. */
export function buriedMessage(message: Message, letter: DeadLetter, origin: KafkaLetter['origin']) {
  const headers: Record<string, Buffer | string> = {};
  for (const [name, value] of Object.entries(message.headers ?? {})) {
    if (value !== undefined && !Array.isArray(value)) headers[name] = value;
  }
  return {
    key: `${letter.group} ${letter.eventId}`,
    value: message.value,
    headers: {
      ...headers,
      dl_group: letter.group,
      dl_code: letter.code,
      dl_message: letter.message,
      dl_attempts: `${letter.attempts}`,
      // A letter that failed again after its replay still says where it first stood.
      dl_topic: `${headers.dl_topic ?? origin.topic}`,
      dl_partition: `${headers.dl_partition ?? origin.partition}`,
      dl_offset: `${headers.dl_offset ?? origin.offset}`,
    },
  };
}

export const letterOf = (message: Message): KafkaLetter => ({
  group: headerOf(message, 'dl_group'),
  position: positionOf(message),
  eventId: headerOf(message, 'ce_id'),
  type: headerOf(message, 'ce_type'),
  stream: headerOf(message, 'ce_subject'),
  code: headerOf(message, 'dl_code'),
  message: headerOf(message, 'dl_message'),
  attempts: Number(headerOf(message, 'dl_attempts')),
  origin: {
    topic: headerOf(message, 'dl_topic'),
    partition: Number(headerOf(message, 'dl_partition')),
    offset: headerOf(message, 'dl_offset'),
  },
});

/** The newest record of each key; a key whose newest has no value is gone. */
export function standing<M extends Message>(messages: readonly M[]): M[] {
  const newest = new Map<string, M>();
  for (const message of messages) {
    newest.delete(`${message.key}`);
    if (message.value !== null) newest.set(`${message.key}`, message);
  }
  return [...newest.values()];
}

/** Where letters are kept besides Kafka, and the log with the events that they are about. */
export interface LettersBesides {
  readonly checkpoints: Pick<Checkpoints, 'deadLetters'>;
  readonly store: Pick<EventStore, 'readAll'>;
}

/** What groups had to put aside, for people to look at and to hand out again. */
export class KafkaDeadLetters implements DeadLetters {
  private readonly client: KafkaClient;

  constructor(
    options: KafkaOptions,
    private readonly besides?: LettersBesides,
  ) {
    this.client = new KafkaClient(options);
  }

  async list(filter: DeadLetterFilter = {}): Promise<KafkaLetter[]> {
    return (await this.find(filter)).map(({ message }) => letterOf(message));
  }

  /**
   * Hands letters to their groups again, in the order of the log. They are deleted here in the same breath; a letter
   * that fails again comes back.
   */
  async replay(filter: DeadLetterFilter = {}) {
    const found = await this.find(filter);
    if (found.length === 0) return { done: [], left: [] };
    const producer = this.client.kafka.producer({
      transactionalId: `${this.client.topics.prefix}.replay`,
      idempotent: true,
      maxInFlightRequests: 1,
    });
    await producer.connect();
    try {
      const topicMessages = [
        { topic: this.client.topics.replay, messages: found.map(({ message }) => again(message)) },
        ...found.map(({ topic, message }) => ({ topic, messages: [{ key: message.key ?? '', value: null }] })),
      ];
      await inTransaction(producer, (transaction) => transaction.sendBatch({ acks: -1, topicMessages }));
    } finally {
      await producer.disconnect();
    }
    return { done: found.map(({ message }) => letterOf(message)), left: [] };
  }

  close(): Promise<void> {
    return this.client.close();
  }

  private async find({ group, eventId }: DeadLetterFilter) {
    const found: { topic: string; message: Message }[] = [];
    const known = new Set(await this.client.asAdmin((admin) => admin.listTopics()));
    for (const topic of this.client.topics.events.map(deadLettersOf).filter((name) => known.has(name))) {
      for (const message of standing(await this.client.read(topic))) found.push({ topic, message });
    }
    found.push(...(await this.onlyBesides(new Set(found.map(({ message }) => `${message.key}`)))));
    const wanted = found.filter(({ message }) => {
      const letter = letterOf(message);
      return (group === undefined || letter.group === group) && (eventId === undefined || letter.eventId === eventId);
    });
    if (eventId !== undefined && wanted.length === 0) {
      throw new AgonError(
        'BUS.NO_SUCH_LETTER',
        `No dead letter is of the event ${eventId}. "agon bus dead-letters" lists them.`,
      );
    }
    return wanted.sort((a, b) => positionOf(a.message) - positionOf(b.message));
  }

  /** Letters that Kafka does not have: another Kafka had them, or they are being replayed right now. */
  private async onlyBesides(known: ReadonlySet<string>) {
    const { topics } = this.client;
    const found: { topic: string; message: Message }[] = [];
    for (const letter of (await this.besides?.checkpoints.deadLetters()) ?? []) {
      if (known.has(`${letter.group} ${letter.eventId}`)) continue;
      const [event] = (await this.besides?.store.readAll({ from: letter.position, limit: 1 })) ?? [];
      // The log was put back to before it, or is another one.
      if (event?.id !== letter.eventId) continue;
      const topic = topics.of(event.stream);
      const message = encodeEvent(event, `/${topics.prefix}/${topics.contextOf(event.stream)}`);
      const origin = { topic, partition: -1, offset: '-1' };
      found.push({ topic: deadLettersOf(topic), message: buriedMessage(message, letter, origin) });
    }
    return found;
  }
}

function again(message: Message) {
  const letter = letterOf(message);
  return buriedMessage(message, letter, letter.origin);
}
