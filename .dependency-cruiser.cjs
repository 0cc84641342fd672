/** Who may know whom. Each rule says why. */
const contexts = '^services/(?!kernel/|adapters/|runtime/)([^/]+)/';

module.exports = {
  forbidden: [
    {
      name: 'pure-domain',
      comment:
        'A context is pure: it knows the kernel, zod and its own folder. Its edges are its part, its policies, which hear ' +
        'of other contexts, what asks a provider for money, and what signs messages.',
      severity: 'error',
      from: {
        path: contexts,
        pathNot: [
          '/(part|policies)\\.ts$',
          '^services/payments/outgoing\\.ts$',
          '^services/webhooks/delivery\\.ts$',
          '\\.(spec|contract)\\.ts$',
        ],
      },
      to: { pathNot: ['^services/kernel/index\\.ts$', '^services/$1/', 'node_modules/zod/'] },
    },
    {
      name: 'contexts-meet-by-events',
      comment: "A context sees another one's public face only, and only its policies and its part do.",
      severity: 'error',
      from: { path: contexts, pathNot: '/part\\.ts$' },
      to: { path: '^services/(?!kernel/|adapters/)[^/]+/', pathNot: ['^services/$1/', '^services/[^/]+/index\\.ts$'] },
    },
    {
      name: 'contexts-know-no-adapter',
      comment: 'Adapters are chosen once, where a part is put together.',
      severity: 'error',
      from: { path: contexts, pathNot: '(/part|\\.(spec|contract))\\.ts$' },
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
      comment:
        'A view depends on what a context publishes, not on how it decides. Parts are wiring and know the runtime.',
      severity: 'error',
      from: { path: '^projections/', pathNot: ['\\.(spec|contract)\\.ts$', '/part\\.ts$'] },
      to: { path: '^(services/(?!.*index\\.ts$|runtime/package\\.ts$)|gateway|sandbox-runner)' },
    },
    {
      name: 'gateway-knows-no-adapter',
      comment:
        'The gateway gets ports; the same one runs on every deployment. Its parts are wiring, and rules.ts says what the games allow.',
      severity: 'error',
      from: { path: '^gateway/', pathNot: ['\\.(spec|contract)\\.ts$', '/(part|rules)\\.ts$'] },
      to: { path: '^(services/adapters/|sandbox-runner/)' },
    },
    {
      name: 'runner-knows-only-the-kernel',
      comment:
        'The sandbox runner is deployed alone and must not reach into the write side. Its parts are wiring and know the runtime.',
      severity: 'error',
      from: { path: '^sandbox-runner/', pathNot: '/part\\.ts$' },
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
