import { type Fault, faultsOf } from './fault.js';

/** What the code of an agent cannot do, reach or learn. */
export const sandboxFaults: readonly Fault[] = [
  ...faultsOf('sandbox-runner/drivers/seccomp.ts', 'sandbox-runner/drivers/seccomp.spec.ts', [
    [
      'allow every system call',
      "...forCall(number('prctl'), whenArgument(0, harmlessPrctls))",
      'returns(verdict.allow)',
    ],
    ['let a clone make namespaces', 'const namespaceFlags = 0x7e02_0000;', 'const namespaceFlags = 0;'],
    ['let every agent make a socket', "(profile === 'egress' ? sockets(architecture) : [])", 'sockets(architecture)'],
  ]),
  ...faultsOf('sandbox-runner/bundles/bundle.ts', 'sandbox-runner/bundles/bundles.spec.ts', [
    ['let a bundle lead out of its folder', "if (parts.includes('..')) return 'it leads out of the bundle';", ''],
  ]),
  ...faultsOf('sandbox-runner/bundles/tar.ts', 'sandbox-runner/bundles/bundles.spec.ts', [
    ['take a link out of an archive for a file', "'2': 'link',", "'2': 'file',"],
  ]),
  ...faultsOf('sandbox-runner/egress/target.ts', 'sandbox-runner/egress/policy.spec.ts', [
    ['reach the inside by a name', 'found.every(', 'found.some('],
  ]),
  ...faultsOf('sandbox-runner/egress/proxy.ts', 'sandbox-runner/egress/egress.spec.ts', [
    [
      'resolve a name once more when it is used',
      'host: address',
      'host: (await resolve(target.host))[0]?.address ?? address',
    ],
    [
      'keep the value that the agent sent for a secret header',
      '[name.toLowerCase()] = fill',
      '[name.toLowerCase()] ??= fill',
    ],
  ]),
  ...faultsOf('sandbox-runner/egress/message.ts', 'sandbox-runner/egress/egress.spec.ts', [
    ['hand a secret back', "clean.fill('*', at, at + form.length);", ''],
    ['read the end of a message in two ways', "(coding === undefined || coding.toLowerCase() === 'chunked') &&", ''],
  ]),
];
