import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../services/runtime/package.js';
import { authorisationFaults } from './authorisation.js';
import { busFaults } from './bus.js';
import type { Fault } from './fault.js';
import { logFaults } from './log.js';
import { moneyFaults } from './money.js';
import { sandboxFaults } from './sandbox.js';

export type { Fault } from './fault.js';

/** If the specs let one of these pass, they are not worth much. */
export const faults: readonly Fault[] = [
  ...moneyFaults,
  ...logFaults,
  ...authorisationFaults,
  ...sandboxFaults,
  ...busFaults,
];

/** Faults that cannot be planted, or that no spec can notice. */
export function unfit(): string[] {
  const names = faults.map(({ name }) => name);
  const twice = names.filter((name, i) => names.indexOf(name) !== i).map((name) => `Two faults are called "${name}".`);
  return [...twice, ...faults.flatMap(whyUnfit)];
}

function whyUnfit({ name, file, find, replace, spec }: Fault): string[] {
  if (!existsSync(join(packageRoot, spec))) return [`The fault "${name}" is guarded by ${spec}, which is not there.`];
  if (!existsSync(join(packageRoot, file))) return [`The fault "${name}" is in ${file}, which is not there.`];
  const places = readFileSync(join(packageRoot, file), 'utf8').split(find).length - 1;
  if (places !== 1) return [`The fault "${name}" fits ${places} places of ${file}, not one.`];
  return find === replace ? [`The fault "${name}" changes nothing.`] : [];
}
