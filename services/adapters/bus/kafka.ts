import type { Message, Producer } from 'kafkajs';
import type { BatchHandler, Bus, Checkpoints, Consumer, ConsumerOptions } from '../../kernel/index.js';
import { KafkaClient, type KafkaOptions } from './kafka-client.js';
import { Member } from './kafka-member.js';

/** The bus of a cluster: every group reads Kafka's topics, and gets the events in the order of the log. */
export class KafkaBus implements Bus {
  private readonly client: KafkaClient;
  private readonly members = new Set<Member>();
  private producer: Promise<Producer> | undefined;

  constructor(
    options: KafkaOptions,
    private readonly checkpoints: Checkpoints,
    private readonly onRetry: (group: string, error: unknown) => void = () => {},
  ) {
    this.client = new KafkaClient(options);
  }

  async consume(options: ConsumerOptions, handler: BatchHandler): Promise<Consumer> {
    const { client, checkpoints, onRetry } = this;
    const send = (topic: string, message: Message) => this.send(topic, message);
    const member = new Member({ client, checkpoints, onRetry, options, handler, send });
    await member.start();
    this.members.add(member);
    const stop = async () => {
      await member.stop();
      this.members.delete(member);
    };
    return { stop, done: member.done, position: () => member.position, active: () => member.active };
  }

  async close(): Promise<void> {
    await Promise.all([...this.members].map((member) => member.stop()));
    await this.producer?.then((producer) => producer.disconnect()).catch(() => {});
    await this.client.close();
  }

  /** Dead letters are rare: their producer is made for the first, and anew after any failure. */
  private async send(topic: string, message: Message): Promise<void> {
    this.producer ??= this.connected();
    const { producer } = this;
    try {
      await (await producer).send({ topic, acks: -1, messages: [message] });
    } catch (error) {
      this.producer = undefined;
      await producer.then((each) => each.disconnect()).catch(() => {});
      throw error;
    }
  }

  private async connected(): Promise<Producer> {
    const producer = this.client.kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
    await producer.connect();
    return producer;
  }
}
