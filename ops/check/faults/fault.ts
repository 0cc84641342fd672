/** A deliberate fault, and the spec file that has to notice it. */
export interface Fault {
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  readonly spec: string;
}

/**
 * The faults of one file that one spec file guards, each as its name, what to find, and what to put there.
 *
 * @example faultsOf('services/wallet/purse.ts', 'services/wallet/wallet.spec.ts', [['let a lock end early', '> now', '> 0']])
 */
export const faultsOf = (
  file: string,
  spec: string,
  rows: readonly (readonly [name: string, find: string, replace: string])[],
): readonly Fault[] => rows.map(([name, find, replace]) => ({ name, file, find, replace, spec }));
