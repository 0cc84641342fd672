import { type Fault, faultsOf } from './fault.js';

/** What carries events to other processes and machines. */
export const busFaults: readonly Fault[] = [
  ...faultsOf('services/adapters/bus/merge.ts', 'services/adapters/bus/merge.spec.ts', [
    [
      'hand out events of a partition before those that come first in the log',
      'events.sort((a, b) => a.position - b.position);',
      '',
    ],
    [
      'hand out a transaction while records of it are on their way',
      'if (last === undefined) return false;',
      'if (last === undefined) return true;',
    ],
    ['skip records that Kafka did not give', 'if (first.offset !== offset) throw', 'if (first.offset < offset) throw'],
    ['skip transactions that Kafka did not give', 'if (watermark.after > this.complete) {', 'if (false) {'],
    ['let offsets get ahead of what was done', 'position <= Math.min(to, this.delivered)', 'position <= to'],
  ]),
  ...faultsOf('services/adapters/bus/message.ts', 'services/adapters/bus/message.spec.ts', [
    ['lose a part of the envelope on the way', 'ce_prevhash: event.prevHash,', 'ce_prevhash: event.hash,'],
  ]),
  ...faultsOf('services/adapters/bus/gap-check.ts', 'services/adapters/bus/gap-check.spec.ts', [
    ['publish a stream that has a hole', 'known + 1 !== revision', 'known >= revision'],
  ]),
  ...faultsOf('services/adapters/bus/kafka-security.ts', 'services/adapters/bus/kafka-security.spec.ts', [
    [
      'send a password to another machine in clear',
      "if (!kafkaTls && mechanism === 'plain' && elsewhere.length > 0) {",
      'if (false) {',
    ],
    ["take another's key for that of the certificate", 'if (!fits) throw', 'if (false) throw'],
  ]),
  ...faultsOf('services/webhooks/delivery.ts', 'services/webhooks/webhooks.spec.ts', [
    ['sign a webhook without its time', '{timestampS}.', '{id}.'],
  ]),
  ...faultsOf('services/adapters/webhook-post.ts', 'services/webhooks/webhooks.spec.ts', [
    ['follow webhooks to private addresses', 'await addressOf(host)', "{ address: '127.0.0.1', family: 4 }"],
  ]),
];
