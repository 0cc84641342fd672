import kafkajs, { type Consumer as KafkaConsumer, type PartitionAssigner } from 'kafkajs';

const { MemberAssignment, MemberMetadata } = kafkajs.AssignerProtocol;
const ACTIVE = Buffer.from('active');

/**
 * All partitions go to one member, because order across partitions is made where they meet; the others stand by. The
 * one that has them keeps them when another joins.
 */
export const allToOne =
  (isActive: () => boolean): PartitionAssigner =>
  ({ cluster }) => ({
    name: 'AgonAllToOne',
    version: 1,
    async assign({ members, topics }) {
      const chosen = chosenOf(
        members.map(({ memberId, memberMetadata }) => ({
          memberId,
          active: MemberMetadata.decode(memberMetadata)?.userData.equals(ACTIVE) ?? false,
        })),
      );
      const all = Object.fromEntries(
        topics.map((topic) => [topic, cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId)]),
      );
      return members.map(({ memberId }) => ({
        memberId,
        memberAssignment: MemberAssignment.encode({
          version: 1,
          assignment: memberId === chosen ? all : {},
          userData: Buffer.alloc(0),
        }),
      }));
    },
    protocol: ({ topics }) => ({
      name: 'AgonAllToOne',
      metadata: MemberMetadata.encode({ version: 1, topics, userData: isActive() ? ACTIVE : Buffer.alloc(0) }),
    }),
  });

/** The member that is active already, and otherwise the first by name. */
export function chosenOf(members: readonly { memberId: string; active: boolean }[]): string | undefined {
  const active = members.filter((member) => member.active);
  return (active.length > 0 ? active : members).map(({ memberId }) => memberId).sort()[0];
}

/** Pauses the partitions that run too far ahead, and lets the others catch up. */
export class Pressure {
  private readonly paused = new Map<string, { topic: string; partition: number }>();

  constructor(private readonly consumer: Pick<KafkaConsumer, 'pause' | 'resume'>) {}

  relieve(topic: string, partition: number, crowded: (topic: string, partition: number) => boolean): void {
    if (crowded(topic, partition)) {
      this.paused.set(`${topic}/${partition}`, { topic, partition });
      this.consumer.pause([{ topic, partitions: [partition] }]);
    }
  }

  review(crowded: (topic: string, partition: number) => boolean): void {
    for (const [key, { topic, partition }] of this.paused) {
      if (crowded(topic, partition)) continue;
      this.paused.delete(key);
      this.consumer.resume([{ topic, partitions: [partition] }]);
    }
  }
}
