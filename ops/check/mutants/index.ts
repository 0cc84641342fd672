import { analyticsMutants } from './analytics.js';
import { busMutants } from './bus.js';
import { clusterStoreMutants } from './cluster-store.js';
import { gatewayMutants } from './gateway.js';
import { logMutants } from './log.js';
import { moneyMutants } from './money.js';
import type { Mutant } from './mutant.js';
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
  ...clusterStoreMutants,
  ...busMutants,
  ...playMutants,
];
