import { posix } from 'node:path';
import ts from 'typescript';
import { importedPath, isSpec, nodesOf, type Problem, problemAt, type Source } from './tidy-source.js';

/** Files whose exports somebody else reads, and who that is. */
const PUBLIC: readonly (readonly [path: RegExp, reader: string])[] = [
  [/^sdk\/typescript\/index\.ts$/, 'those who write agents'],
  [/^services\/[^/]+\/index\.ts$/, 'contexts to come: what a context shows of itself is for it to say'],
  [/^vitest\.config\.ts$/, 'vitest, by its name'],
  [/^ops\/check\/(reporter|shared-engines)\.ts$/, 'vitest, by their paths'],
];

/** Files that are there for specs. */
const FOR_SPECS = /\.contract\.ts$|^services\/kernel\/(spec|fixtures)\.ts$|^ops\/engines\//;

const EVERYTHING = '*';

/** Who imports what: by file, each name with the files that import it. */
type Uses = Map<string, Map<string, Set<string>>>;

/**
 * What is exported is imported by another file. A spec counts if it is beside the file, which is how a part is tried by
 * itself, or if the file is there for specs; otherwise what only a test asks for would be there for the test alone. A type
 * is alive as well if another export of its file names it, outside of any function's body: whoever uses the one may have to
 * name the other. Importing a file as a whole, or without saying what, is importing all of it.
 */
export function deadExports(sources: readonly Source[]): Problem[] {
  const known = new Set(sources.map(({ path }) => path));
  const uses: Uses = new Map();
  for (const source of sources) for (const node of nodesOf(source.tree)) noteUses(uses, known, source, node);
  return sources
    .filter(({ path }) => /\.tsx?$/.test(path) && !PUBLIC.some(([pattern]) => pattern.test(path)))
    .flatMap((source) => deadIn(source, uses));
}

function deadIn(source: Source, uses: Uses): Problem[] {
  const { path } = source;
  const users = uses.get(path);
  const counts = (user: string) => !isSpec(user) || posix.dirname(user) === posix.dirname(path) || FOR_SPECS.test(path);
  const all = exportsOf(source);
  const problems: Problem[] = [];
  for (const { name, node, isType } of all) {
    const by = [...(users?.get(name) ?? []), ...(users?.get(EVERYTHING) ?? [])];
    if (by.some(counts)) continue;
    if (isType && all.some((other) => other.node !== node && namesType(other.node, name))) continue;
    const why = by.length > 0 ? `only ${by[0]} imports it` : 'nobody imports it';
    problems.push(problemAt(source, node, `${name} is exported, and ${why}`));
  }
  return problems;
}

/** Whether a declaration speaks of a type where others see it. */
function namesType(node: ts.Node, name: string): boolean {
  if (ts.isBlock(node)) return false;
  if (ts.isIdentifier(node) && node.text === name) return true;
  return ts.forEachChild(node, (child) => namesType(child, name)) ?? false;
}

interface Export {
  readonly name: string;
  /** The declaration, or the name among others that are exported together. */
  readonly node: ts.Node;
  readonly isType: boolean;
}

const TYPES = new Set([
  ts.SyntaxKind.InterfaceDeclaration,
  ts.SyntaxKind.TypeAliasDeclaration,
  ts.SyntaxKind.ClassDeclaration,
  ts.SyntaxKind.EnumDeclaration,
]);

function exportsOf({ tree }: Source): Export[] {
  return tree.statements.flatMap((statement): Export[] => {
    const isType = TYPES.has(statement.kind);
    const at = (name: string) => ({ name, node: statement, isType });
    if (ts.isExportAssignment(statement)) return [at('default')];
    if (ts.isExportDeclaration(statement)) {
      const { exportClause } = statement;
      if (!exportClause) return [];
      if (ts.isNamespaceExport(exportClause)) return [at(exportClause.name.text)];
      return exportClause.elements.map((node) => ({ name: node.name.text, node, isType: false }));
    }
    const modifiers = ts.canHaveModifiers(statement) ? (ts.getModifiers(statement) ?? []) : [];
    const has = (kind: ts.SyntaxKind) => modifiers.some((modifier) => modifier.kind === kind);
    if (!has(ts.SyntaxKind.ExportKeyword)) return [];
    if (has(ts.SyntaxKind.DefaultKeyword)) return [at('default')];
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.flatMap(({ name }) => namesIn(name)).map(at);
    }
    const { name } = statement as ts.Statement & { readonly name?: ts.Identifier };
    return name ? [at(name.text)] : [];
  });
}

function namesIn(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((element) => (ts.isOmittedExpression(element) ? [] : namesIn(element.name)));
}

function noteUses(uses: Uses, known: ReadonlySet<string>, { path }: Source, node: ts.Node): void {
  const specifier = specifierOf(node);
  const target = specifier && importedPath(path, specifier, known);
  if (!target) return;
  const names = uses.get(target) ?? new Map<string, Set<string>>();
  uses.set(target, names);
  for (const name of importedNames(node)) names.set(name, (names.get(name) ?? new Set()).add(path));
}

function specifierOf(node: ts.Node): string | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return textOf(node.moduleSpecifier);
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) return textOf(node.argument.literal);
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
    return textOf(node.arguments[0]);
  return undefined;
}

const textOf = (node: ts.Node | undefined) => (node && ts.isStringLiteral(node) ? node.text : undefined);

function importedNames(node: ts.Node): string[] {
  if (ts.isImportDeclaration(node)) {
    const { name, namedBindings } = node.importClause ?? {};
    const byDefault = name ? ['default'] : [];
    if (!namedBindings) return byDefault;
    if (ts.isNamespaceImport(namedBindings)) return [...byDefault, EVERYTHING];
    return [...byDefault, ...namedBindings.elements.map((each) => (each.propertyName ?? each.name).text)];
  }
  if (ts.isExportDeclaration(node)) {
    const { exportClause } = node;
    if (!exportClause || ts.isNamespaceExport(exportClause)) return [EVERYTHING];
    return exportClause.elements.map((each) => (each.propertyName ?? each.name).text);
  }
  if (ts.isImportTypeNode(node)) {
    return node.qualifier && ts.isIdentifier(node.qualifier) ? [node.qualifier.text] : [EVERYTHING];
  }
  return dynamicNames(node.parent);
}

/** `const { a } = await import(...)` names what it takes. */
function dynamicNames(parent: ts.Node): string[] {
  const declaration = ts.isAwaitExpression(parent) ? parent.parent : parent;
  if (!ts.isVariableDeclaration(declaration) || !ts.isObjectBindingPattern(declaration.name)) return [EVERYTHING];
  return declaration.name.elements.map(({ propertyName, name }) => (propertyName ?? name).getText());
}
