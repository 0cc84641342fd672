/** A deliberate fault, and the specs of which at least one has to notice it. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  readonly specs: string;
}
