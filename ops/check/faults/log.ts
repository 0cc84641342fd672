import { type Fault, faultsOf } from './fault.js';

/** What was recorded stays as it was, is recorded once, and reaches every reader once and in order. */
export const logFaults: readonly Fault[] = [
  ...faultsOf('services/adapters/store/append-rules.ts', 'services/adapters/store/memory.spec.ts', [
    ['skip the revision check', 'if (revision !== expectedRevision) return false;', ''],
  ]),
  ...faultsOf('services/kernel/event.ts', 'services/kernel/event.spec.ts', [
    ['leave the data out of the hash', 'dataText},"id"', 'null},"id"'],
  ]),
  ...faultsOf('services/kernel/handle.ts', 'services/kernel/handle.spec.ts', [
    ['carry out a repeated command again', 'if (before) return repeat(', 'if (before && attempt > 99) return repeat('],
    ['accept a key with another body', 'if (before.inputHash !== inputHash)', 'if (before.inputHash === undefined)'],
    ['record what another schema has checked', 'spec?.schema === classOf(command).spec.data', 'spec !== undefined'],
    ['let two commands into one stream', 'new Promise<void>((resolve) => ahead.push(resolve))', 'Promise.resolve()'],
  ]),
  ...faultsOf('services/kernel/policy.ts', 'services/kernel/policy.spec.ts', [
    ['give all reactions of a policy one id', 'derivedId(event.id, name, index)', 'derivedId(event.id, name)'],
  ]),
  ...faultsOf('services/adapters/store/follow.ts', 'services/adapters/store/memory.spec.ts', [
    ['hand an event out twice', 'cursor = last.position;', 'cursor = (batch.at(-2) ?? last).position;'],
  ]),
  ...faultsOf('services/adapters/store/block.ts', 'services/adapters/store/lmdb-damage.spec.ts', [
    ['serve a block that fails its checksum', '!== block.readUInt32LE(1)', '< 0'],
  ]),
  ...faultsOf('services/adapters/store/lmdb.ts', 'services/adapters/store/lmdb-damage.spec.ts', [
    [
      'acknowledge without writing',
      'this.log.put(at, block, { noOverwrite: true })',
      'Promise.resolve(block.length > 0)',
    ],
  ]),
  ...faultsOf('services/adapters/relay.ts', 'services/adapters/relay.spec.ts', [
    [
      'move the checkpoint before the work is done',
      'await publish(events);',
      'await checkpoints.save(group, events.at(-1)?.position ?? position);\n    await publish(events);',
    ],
  ]),
  ...faultsOf('gateway/eventstore/appends.ts', 'gateway/eventstore/eventstore.spec.ts', [
    [
      'take a sealed event at the endpoint without computing its hash',
      'if (recomputeHash(event) !== event.hash) {',
      "if (event.hash === '') {",
    ],
  ]),
  ...faultsOf('services/adapters/store/eventstoredb-tail.ts', 'services/adapters/store/eventstoredb-tail.spec.ts', [
    ['go on behind events that were on their way', '&& live.readableLength === 0)', ')'],
  ]),
  ...faultsOf('projections/engine/projector.ts', 'projections/engine/projector.spec.ts', [
    ['take in an event twice', 'let last = from;', 'let last = 0;'],
  ]),
  ...faultsOf('projections/engine/rebuild.ts', 'projections/engine/projections.spec.ts', [
    [
      'go on behind what a crash took from a build',
      'position = await projector.reload();',
      'await projector.reload();',
    ],
  ]),
];
