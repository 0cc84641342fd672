import { mutants } from './mutants/index.js';

/** Plants one deliberate fault while the sources are loaded. The files on disk are never touched. */
export function mutantPlugin(name: string) {
  const mutant = mutants.find((each) => each.name === name);
  if (!mutant) throw new Error(`There is no mutant "${name}".`);
  return {
    name: 'agon-mutant',
    enforce: 'pre' as const,
    transform(code: string, id: string): string | undefined {
      if (!id.split('?')[0]?.endsWith(mutant.file)) return undefined;
      const parts = code.split(mutant.find);
      if (parts.length !== 2) throw new Error(`Mutant "${name}" fits ${parts.length - 1} places of ${mutant.file}.`);
      return parts.join(mutant.replace);
    },
  };
}
