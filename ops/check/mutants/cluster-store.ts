import type { Mutant } from './mutant.js';

const adapter = 'services/adapters/store/eventstoredb.ts';
const appends = 'gateway/eventstore/appends.ts';
const endpoint = 'gateway/eventstore/eventstore';

export const clusterStoreMutants: readonly Mutant[] = [
  {
    name: 'take a sealed event at the door without computing its hash',
    file: appends,
    find: 'if (recomputeHash(event) !== event.hash) {',
    replace: "if (event.hash === '') {",
    specs: endpoint,
  },
  {
    name: "let others write into the arena's own streams",
    file: appends,
    find: 'const own = proposed.find(({ type }) => ports.isOwn(stream, type));',
    replace: 'const own = proposed.find(({ type }) => ports.isOwn(stream, type) && type === stream);',
    specs: endpoint,
  },
  {
    name: 'let a key for reading write',
    file: 'gateway/eventstore/server.ts',
    find: 'if (access.write) return access;',
    replace: 'if (access.actor) return access;',
    specs: endpoint,
  },
  {
    name: 'serve a filter that lets everything through',
    file: 'gateway/eventstore/reads.ts',
    find: '(filter?.wants({ stream: name, type }) ?? true)',
    replace: '(filter ? true : name !== type)',
    specs: endpoint,
  },
  {
    name: 'run a pattern that takes for ever',
    file: 'gateway/eventstore/filter.ts',
    find: 'regex = RE2JS.compile(pattern);',
    replace: 'regex = Object.assign(new RegExp(pattern), { programSize: () => 0 }) as never;',
    specs: 'gateway/eventstore/eventstore.spec.ts -t remembers',
  },
  {
    name: 'give two contents one id on EventStoreDB',
    file: 'proto/eventstore.ts',
    find: "export function contentId({ hash }: Pick<SealedEvent, 'hash'>): string {",
    replace: "export function contentId(_event: object): string {\n  const hash = '0'.repeat(64);",
    specs: 'gateway/eventstore/wire',
  },
  {
    name: 'forget the metadata that an event came with',
    file: 'proto/eventstore.ts',
    find: '.enclosed === true ? reclose(given, metadata) : given;',
    replace: '.enclosed === undefined ? given : given;',
    specs: 'gateway/eventstore/wire',
  },
  {
    name: 'go on behind events that were on their way',
    file: 'services/adapters/store/eventstoredb-tail.ts',
    find: '&& live.readableLength === 0)',
    replace: ')',
    specs: 'services/adapters/store/eventstoredb-tail',
  },
  {
    name: 'send a broken chain to EventStoreDB',
    file: adapter,
    find: 'if (known?.revision === expectedRevision && fits(known, expectedRevision, events)) {',
    replace: 'if (known?.revision === expectedRevision) {',
    specs: 'services/adapters/store/eventstoredb-connection',
  },
  {
    name: 'lose an event where a dropped subscription is taken up again',
    file: 'services/adapters/store/eventstoredb-tail.ts',
    find: 'const at = BigInt(Math.max(this.delivered, this.checkpoint));',
    replace: 'const at = BigInt(Math.max(this.delivered, this.checkpoint) + 1);',
    specs: 'services/adapters/store/eventstoredb-connection',
  },
  {
    name: 'move a log without comparing it',
    file: 'ops/embedded/migrate.ts',
    find: 'if (ours.hash === theirs.hash && ours.stream === theirs.stream && ours.revision === theirs.revision) return;',
    replace: 'if (theirs.revision >= 0) return;',
    specs: 'ops/embedded/migrate',
  },
  {
    name: 'move an event that does not hold',
    file: 'ops/embedded/migrate.ts',
    find: 'if (why) {',
    replace: "if (why === '') {",
    specs: 'ops/embedded/migrate',
  },
];
