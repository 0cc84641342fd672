/** A deliberate fault, and the specs of which at least one has to notice it. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  readonly specs: string;
}

/** If the tests let one of these pass, the tests are not worth much. */
export const mutants: readonly Mutant[] = [
  {
    name: 'settle twice',
    file: 'services/arena/decider.ts',
    find: "if (state.status !== 'claimed' || lease?.runnerId",
    replace: 'if (lease !== undefined && lease?.runnerId',
    specs: 'services/arena',
  },
  {
    name: 'skip the revision check',
    file: 'services/adapters/store/append-rules.ts',
    find: 'if (revision !== expectedRevision) return false;',
    replace: '',
    specs: 'services/adapters/store/memory',
  },
  {
    name: 'drop the hash',
    file: 'services/kernel/event.ts',
    find: "hash: digest('sha256', envelopeText(event, dataText)),",
    replace: 'hash: GENESIS_HASH,',
    specs: 'services/kernel/event',
  },
  {
    name: 'leave the data out of the hash',
    file: 'services/kernel/event.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is source text.
    find: '`{"data":${dataText},',
    replace: '`{"data":null,',
    specs: 'services/kernel/event',
  },
  {
    name: 'ignore a hold',
    file: 'services/wallet/decider.ts',
    find: 'available: moved(-amountCents)',
    replace: 'available: moved(0n)',
    specs: 'services/wallet',
  },
  {
    name: 'allow an overdraft',
    file: 'services/wallet/decider.ts',
    find: 'if (available < BigInt(data.amountCents)) {',
    replace: 'if (available < 0n) {',
    specs: 'services/wallet',
  },
  {
    name: 'end a hold twice',
    file: 'services/wallet/decider.ts',
    find: 'return { available: state.available, holds: without(state.holds, event.data.holdId) };',
    replace: 'return state;',
    specs: 'services/wallet',
  },
  {
    name: 'round the rake up',
    file: 'services/arena/settlement.ts',
    find: '(potCents * BigInt(rakeBps)) / 10_000n',
    replace: '(potCents * BigInt(rakeBps) + 9_999n) / 10_000n',
    specs: 'services/arena',
  },
  {
    name: 'carry out a repeated command again',
    file: 'services/kernel/handle.ts',
    find: 'if (before) return repeat(',
    replace: 'if (before && attempt > 99) return repeat(',
    specs: 'services/kernel/handle',
  },
  {
    name: 'accept a key with another body',
    file: 'services/kernel/handle.ts',
    find: 'if (before.inputHash !== inputHash) {',
    replace: 'if (before.inputHash === undefined) {',
    specs: 'services/kernel/handle',
  },
  {
    name: 'record what another schema has checked',
    file: 'services/kernel/handle.ts',
    find: ' && spec?.schema === classOf(command).spec.data;',
    replace: ' && spec !== undefined;',
    specs: 'services/kernel/handle',
  },
  {
    name: 'let two commands into one stream',
    file: 'services/kernel/handle.ts',
    find: 'if (ahead) await new Promise<void>((turn) => queue.push(turn));',
    replace: 'if (ahead) queue.push(() => {});',
    specs: 'services/kernel/handle',
  },
  {
    name: 'let anybody do anything',
    file: 'services/kernel/handle.ts',
    find: 'if (!spec.allow(command.meta.actor, command.data)) {',
    replace: 'if (spec.type === undefined) {',
    specs: 'services/kernel/handle',
  },
  {
    name: 'give all reactions of a policy one id',
    file: 'services/kernel/policy.ts',
    find: 'derivedId(event.id, name, index)',
    replace: 'derivedId(event.id, name)',
    specs: 'services/kernel/policy services/arena',
  },
  {
    name: 'skip an event where catch-up meets live',
    file: 'services/adapters/store/follow.ts',
    find: 'cursor = last.position;',
    replace: 'cursor = last.position + 1;',
    specs: 'services/adapters/store/memory',
  },
  {
    name: 'serve a block that fails its checksum',
    file: 'services/adapters/store/block.ts',
    find: 'if (crc32(block.subarray(CHECKED_FROM)) !== block.readUInt32LE(1))',
    replace: 'if (crc32(block.subarray(CHECKED_FROM)) < 0)',
    specs: 'services/adapters/store/lmdb',
  },
  {
    name: 'acknowledge without writing',
    file: 'services/adapters/store/lmdb.ts',
    find: 'this.log.put(at, block, { noOverwrite: true })',
    replace: 'Promise.resolve(block.length > 0)',
    specs: 'services/adapters/store/lmdb',
  },
  {
    name: 'move the checkpoint before the work is done',
    file: 'services/adapters/relay.ts',
    find: 'await publish(events);',
    replace: 'await checkpoints.save(group, events.at(-1)?.position ?? position);\n    await publish(events);',
    specs: 'services/adapters',
  },
  {
    name: 'take in an event twice',
    file: 'projections/engine/projector.ts',
    find: 'event.position > from)',
    replace: 'event.position > 0)',
    specs: 'projections/engine',
  },
  {
    name: 'post one side of a transfer only',
    file: 'projections/balances/view.ts',
    find: '{ account: from, currency, amountCents: -amountCents },',
    replace: '',
    specs: 'projections/engine',
  },
  {
    name: 'rate newcomers like veterans',
    file: 'projections/leaderboards/elo.ts',
    find: 'gamesPlayed < PROVISIONAL_GAMES ? 32 : 16',
    replace: 'gamesPlayed < 0 ? 32 : 16',
    specs: 'projections/leaderboards',
  },
  {
    name: 'allow every system call',
    file: 'sandbox-runner/drivers/seccomp.ts',
    find: "...forCall(number('prctl'), whenArgument(0, harmlessPrctls)),",
    replace: 'returns(verdict.allow),',
    specs: 'sandbox-runner/drivers/seccomp',
  },
  {
    name: 'let a clone make namespaces',
    file: 'sandbox-runner/drivers/seccomp.ts',
    find: 'const namespaceFlags = 0x7e02_0000;',
    replace: 'const namespaceFlags = 0;',
    specs: 'sandbox-runner/drivers/seccomp',
  },
];
