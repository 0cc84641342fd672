import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../version.js';
import { analyticsMutants } from './analytics.js';
import { busMutants } from './bus.js';
import { clusterMutants } from './cluster.js';
import { clusterStoreMutants } from './cluster-store.js';
import { gatewayMutants } from './gateway.js';
import { identityMutants } from './identity.js';
import { logMutants } from './log.js';
import { moneyMutants } from './money.js';
import type { Mutant } from './mutant.js';
import { observeMutants } from './observe.js';
import { paymentsMutants } from './payments.js';
import { playMutants } from './play.js';
import { sandboxMutants } from './sandbox.js';
import { viewsMutants } from './views.js';

export type { Mutant } from './mutant.js';

/** If the tests let one of these pass, the tests are not worth much. */
export const mutants: readonly Mutant[] = [
  ...logMutants,
  ...moneyMutants,
  ...paymentsMutants,
  ...viewsMutants,
  ...analyticsMutants,
  ...sandboxMutants,
  ...gatewayMutants,
  ...identityMutants,
  ...clusterStoreMutants,
  ...clusterMutants,
  ...busMutants,
  ...playMutants,
  ...observeMutants,
];

/** A fault that cannot be planted would make every spec fail to load, and look as if it had been noticed. */
export function unfit(): string[] {
  return mutants.flatMap(({ file, find, name }) => {
    const places = readFileSync(join(packageRoot, file), 'utf8').split(find).length - 1;
    return places === 1 ? [] : [`The fault "${name}" fits ${places} places of ${file}, not one.`];
  });
}
