import { posix } from 'node:path';
import ts from 'typescript';

/** A file of code, parsed once for all rules. */
export interface Source {
  readonly path: string;
  readonly tree: ts.SourceFile;
}

export interface Problem {
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly why: string;
}

export const parse = (path: string, text: string): Source => ({
  path,
  tree: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true),
});

export const isTest = (path: string) => /\.(spec|contract)\.ts$/.test(path);
export const isSpec = (path: string) => /\.spec\.ts$/.test(path);

export const lineOf = ({ tree }: Source, position: number): number =>
  tree.getLineAndCharacterOfPosition(position).line + 1;

export const problemAt = (source: Source, node: ts.Node, why: string): Problem => ({
  path: source.path,
  line: lineOf(source, node.getStart(source.tree)),
  why,
});

/** Every node of a file, outer ones first. */
export function* nodesOf(root: ts.Node): Generator<ts.Node> {
  const open: ts.Node[] = [root];
  for (let node = open.pop(); node; node = open.pop()) {
    yield node;
    const children: ts.Node[] = [];
    ts.forEachChild(node, (child) => void children.push(child));
    open.push(...children.reverse());
  }
}

/** The file that a relative import means, by how TypeScript spells it; undefined for a package. */
export function importedPath(from: string, specifier: string, known: ReadonlySet<string>): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  // The command line's first step imports what was built.
  const path = posix.join(posix.dirname(from), specifier).replace(/^dist\//, '');
  const written = [path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx'), path];
  return written.find((each) => known.has(each));
}
