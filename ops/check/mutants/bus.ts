import type { Mutant } from './mutant.js';

const MERGE = { file: 'services/adapters/bus/merge.ts', specs: 'services/adapters/bus/merge.spec.ts' };
const MESSAGE = 'services/adapters/bus/message.spec.ts';
const SECURITY = 'services/adapters/bus/kafka-security.spec.ts -t security';

/** Faults of what carries events between processes. None of their specs needs a broker. */
export const busMutants: readonly Mutant[] = [
  {
    name: 'hand out events of a partition before those that come first in the log',
    ...MERGE,
    find: 'events.sort((a, b) => a.position - b.position);',
    replace: '',
  },
  {
    name: 'hand out a transaction while records of it are on their way',
    ...MERGE,
    find: 'if (last === undefined) return false;',
    replace: 'if (last === undefined) return true;',
  },
  {
    name: 'skip records that Kafka did not give',
    ...MERGE,
    find: 'if (first.offset !== offset) throw',
    replace: 'if (first.offset < offset) throw',
  },
  {
    name: 'skip transactions that Kafka did not give',
    ...MERGE,
    find: 'if (watermark.after > this.complete) {',
    replace: 'if (false) {',
  },
  {
    name: 'deliver again what is below the checkpoint',
    ...MERGE,
    find: 'if (record.position > this.complete) events.push(record);',
    replace: 'events.push(record);',
  },
  {
    name: 'take a record twice that was read twice',
    ...MERGE,
    find: 'if (record.offset <= lane.last) continue;',
    replace: '',
  },
  {
    name: 'let offsets get ahead of what was done',
    ...MERGE,
    find: 'this.passed[0].position <= Math.min(to, this.delivered)',
    replace: 'this.passed[0].position <= to',
  },
  {
    name: 'let offsets get ahead of what was saved',
    ...MERGE,
    find: 'this.passed[0].position <= Math.min(to, this.delivered)',
    replace: 'this.passed[0].position <= this.delivered',
  },
  {
    name: 'never pause a partition that runs ahead',
    ...MERGE,
    find: 'return lane.records.length - lane.taken >= AHEAD_MAX.events;',
    replace: 'return false;',
  },
  {
    name: 'lose a part of the envelope on the way',
    file: 'services/adapters/bus/message.ts',
    find: 'ce_prevhash: event.prevHash,',
    replace: 'ce_prevhash: event.hash,',
    specs: MESSAGE,
  },
  {
    name: 'take the partitions from the member that has them',
    file: 'services/adapters/bus/kafka-group.ts',
    find: '(active.length > 0 ? active : members)',
    replace: 'members',
    specs: MESSAGE,
  },
  {
    name: 'make topics with fewer copies than were asked for',
    file: 'services/adapters/bus/kafka-client.ts',
    find: 'missing.length > 0 && brokers.length < copies',
    replace: 'missing.length > 0 && brokers.length === 0',
    specs: 'services/adapters/bus/kafka-client.spec.ts',
  },
  {
    name: 'list dead letters that were replayed',
    file: 'services/adapters/bus/kafka-letters.ts',
    find: 'newest.delete(',
    replace: 'newest.has(',
    specs: MESSAGE,
  },
  {
    name: 'send a transaction that is larger than a partition may hold',
    file: 'services/adapters/bus/kafka-relay.ts',
    find: '|| bytes + event.bytes > limits.bytes',
    replace: '',
    specs: MESSAGE,
  },
  {
    name: 'publish a stream that has a hole',
    file: 'services/adapters/bus/unbroken.ts',
    find: 'known + 1 !== revision',
    replace: 'known >= revision',
    specs: 'services/adapters/bus/unbroken',
  },
  {
    name: 'publish a stream whose beginning was left out',
    file: 'services/adapters/bus/unbroken.ts',
    find: 'before.position <= this.from',
    replace: 'before.position > 0',
    specs: 'services/adapters/bus/unbroken',
  },
  {
    name: "take a successor's lease away when one's own ran out",
    file: 'services/adapters/lease.ts',
    find: "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end",
    replace: "redis.call('DEL', KEYS[1])",
    specs: 'services/adapters/lease.spec.ts',
  },
  {
    name: 'count a lease as held that Redis no longer knows',
    file: 'services/adapters/lease.ts',
    find: 'answer === TAKEN || ',
    replace: 'answer === 2 && ',
    specs: 'services/adapters/lease.spec.ts',
  },
  {
    name: 'send a password to another machine in clear',
    file: 'services/adapters/bus/kafka-security.ts',
    find: "if (!kafkaTls && mechanism === 'plain' && elsewhere.length > 0) {",
    replace: 'if (false) {',
    specs: SECURITY,
  },
  {
    name: "take another's key for that of the certificate",
    file: 'services/adapters/bus/kafka-security.ts',
    find: 'if (!fits) throw',
    replace: 'if (false) throw',
    specs: SECURITY,
  },
  {
    name: 'speak to Kafka in clear although an authority was named',
    file: 'services/kernel/config.ts',
    find: 'return kafkaTls ?? files;',
    replace: 'return kafkaTls ?? false;',
    specs: 'services/kernel/config.spec.ts',
  },
  {
    name: 'show a password of Kafka that cannot be used',
    file: 'services/kernel/config.ts',
    find: '|token|password/i',
    replace: '|token/i',
    specs: 'services/kernel/config.spec.ts',
  },
];
