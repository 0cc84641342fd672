/** Who may know whom. Each rule says why. */
const contexts = '^services/(?!kernel/|adapters/)([^/]+)/';

module.exports = {
  forbidden: [
    {
      name: 'pure-domain',
      comment: 'Events, deciders and their arithmetic are pure: they know the kernel, zod and their own folder.',
      severity: 'error',
      from: {
        path: '^services/(?!kernel/|adapters/)([^/]+)/(events|commands|decider|settlement|report|state|notices|offers)\\.ts$',
      },
      to: { pathNot: ['^services/kernel/index\\.ts$', '^services/$1/', 'node_modules/zod/'] },
    },
    {
      name: 'contexts-meet-by-events',
      comment: "A context sees another one's public face only, and only its policies do.",
      severity: 'error',
      from: { path: contexts },
      to: { path: '^services/(?!kernel/|adapters/)[^/]+/', pathNot: ['^services/$1/', '^services/[^/]+/index\\.ts$'] },
    },
    {
      name: 'contexts-know-no-adapter',
      comment: 'Adapters are chosen once, in the composition root.',
      severity: 'error',
      from: { path: contexts, pathNot: '\\.(spec|contract)\\.ts$' },
      to: { path: '^services/adapters/' },
    },
    {
      name: 'kernel-stands-alone',
      comment: 'The kernel knows nobody.',
      severity: 'error',
      from: { path: '^services/kernel/', pathNot: '\\.(spec|contract)\\.ts$' },
      to: { path: '^(services/(?!kernel/)|projections|gateway|sandbox-runner|ops)' },
    },
    {
      name: 'projections-see-public-events',
      comment: 'A view depends on what a context publishes, not on how it decides.',
      severity: 'error',
      from: { path: '^projections/', pathNot: '\\.(spec|contract)\\.ts$' },
      to: { path: '^(services/(?!.*index\\.ts$)|gateway|sandbox-runner)' },
    },
    {
      name: 'gateway-knows-no-adapter',
      comment: 'The gateway gets ports; the same one runs on every deployment.',
      severity: 'error',
      from: { path: '^gateway/', pathNot: '\\.(spec|contract)\\.ts$' },
      to: { path: '^(services/adapters/|sandbox-runner/)' },
    },
    {
      name: 'runner-knows-only-the-kernel',
      comment: 'The sandbox runner is deployed alone and must not reach into the write side.',
      severity: 'error',
      from: { path: '^sandbox-runner/' },
      to: { path: '^(services/(?!kernel/)|projections|gateway)' },
    },
    {
      name: 'proto-stands-alone',
      comment: 'What crosses the wire is known to both ends and knows neither.',
      severity: 'error',
      from: { path: '^proto/' },
      to: { path: '^(services/(?!kernel/)|projections|gateway|sandbox-runner|ops)' },
    },
    {
      name: 'sdk-stands-alone',
      comment:
        'An SDK is published by itself: it knows the wire and the rules of the games, and nothing of what is behind.',
      severity: 'error',
      from: { path: '^sdk/', pathNot: '\\.(spec|contract)\\.ts$' },
      to: { path: '^(services|projections|gateway|sandbox-runner/(?!games/)|ops|proto/(?!gen/))' },
    },
    {
      name: 'games-travel-light',
      comment: 'The rules of the games are published with the SDK: they bring nothing of the arena but its error type.',
      severity: 'error',
      from: { path: '^sandbox-runner/games/', pathNot: '\\.spec\\.ts$' },
      to: {
        pathNot: ['^sandbox-runner/games/', '^services/kernel/errors\\.ts$', 'node_modules/chess\\.js/', '^crypto$'],
      },
    },
    {
      name: 'nothing-imports-ops',
      comment: 'ops/ puts things together; nothing leans on how.',
      severity: 'error',
      from: { pathNot: ['^ops/', '\\.(spec|contract)\\.ts$', '^vitest\\.config\\.ts$'] },
      to: { path: '^ops/' },
    },
    {
      name: 'nest-at-the-edge',
      comment: 'Nest is wiring. Domain code, views and the runner are plain TypeScript.',
      severity: 'error',
      from: { pathNot: ['^gateway/', '^ops/', '^services/kernel/nest\\.ts$', '\\.(spec|contract)\\.ts$'] },
      to: { path: 'node_modules/@nestjs/' },
    },
    {
      name: 'engines-behind-ports',
      comment: 'An engine is known to its adapter and to nobody else.',
      severity: 'error',
      from: { pathNot: ['^services/adapters/', '^projections/sinks/', '^ops/'] },
      to: { path: 'node_modules/(lmdb|pg|kafkajs|ioredis|chdb|stripe)/' },
    },
    {
      name: 'eventstoredb-at-two-doors',
      comment: "EventStoreDB's client and its protocol are known to the adapter, and to the endpoint that speaks it.",
      severity: 'error',
      from: { pathNot: ['^services/adapters/store/eventstoredb', '^gateway/eventstore/', '^ops/'] },
      to: { path: 'node_modules/(@eventstore/|google-protobuf/)' },
    },
    {
      name: 'no-cycles',
      comment: 'Two modules that need each other are one module. Types alone may point both ways.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: ['(^|/)dist/', 'ops/bench/node_modules'] },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
