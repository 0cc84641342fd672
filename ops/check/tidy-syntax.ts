import { posix } from 'node:path';
import ts from 'typescript';
import { isTest, lineOf, nodesOf, type Problem, problemAt, type Source } from './tidy-source.js';

const FUNCTION_LINES_MAX = 70;

type SyntaxRule = (source: Source) => Problem[];

type Place = (node: ts.Node) => ts.Node;
const itself: Place = (node) => node;
const itsName: Place = (node) => (node as ts.NamedDeclaration).name ?? node;

/** A rule of what is wrong with a node, if anything, and where that is told. */
const eachNode =
  (whyNot: (node: ts.Node, source: Source) => string | undefined, place = itself): SyntaxRule =>
  (source) =>
    [...nodesOf(source.tree)].flatMap((node) => {
      const why = whyNot(node, source);
      return why === undefined ? [] : [problemAt(source, place(node), why)];
    });

/**
 * A function fits on a screen. Its lines are those from its first to its last, comments and blank ones as well, without
 * those of the functions in it but for the line where each begins: they count for themselves alone.
 */
export const shortFunctions = eachNode((node, source) => {
  if (!ts.isFunctionLike(node) || !('body' in node) || !node.body) return undefined;
  const lines = ownLines(source, node);
  if (lines <= FUNCTION_LINES_MAX || onlyDispatches(node.body as ts.Node)) return undefined;
  return `a function has at most ${FUNCTION_LINES_MAX} lines, and this one ${lines}`;
});

function ownLines(source: Source, fn: ts.Node): number {
  let lines = spanOf(source, fn) + 1;
  const open: ts.Node[] = [];
  const look = (node: ts.Node) => ts.forEachChild(node, (child) => void open.push(child));
  look(fn);
  for (let node = open.pop(); node; node = open.pop()) {
    if (ts.isFunctionLike(node)) lines -= spanOf(source, node);
    else look(node);
  }
  return lines;
}

/** From the first line to the last; decorators say something about a method, and are none of its lines. */
function spanOf(source: Source, node: ts.Node): number {
  const modifiers = ts.canHaveDecorators(node) ? (ts.getDecorators(node) ?? []) : [];
  const start = modifiers.at(-1)?.getEnd() ?? node.getStart(source.tree);
  const skipped = /^\s*/.exec(source.tree.text.slice(start, start + 200))?.[0].length ?? 0;
  return lineOf(source, node.getEnd()) - lineOf(source, start + skipped);
}

/** A switch with nothing around it but names, whose cases name some more and do one thing. A case that decides is no dispatch. */
function onlyDispatches(body: ts.Node): boolean {
  if (!ts.isBlock(body)) return false;
  const [dispatch, ...rest] = body.statements.filter((statement) => !ts.isVariableStatement(statement));
  if (!dispatch || !ts.isSwitchStatement(dispatch) || rest.length > 0) return false;
  return dispatch.caseBlock.clauses.every(({ statements: [first, ...more] }) => {
    const all =
      first && ts.isBlock(first) && more.length === 0 ? [...first.statements] : [...(first ? [first] : []), ...more];
    const done = all.filter((statement) => !ts.isVariableStatement(statement) && !ts.isBreakStatement(statement));
    return done.length <= 1 && done.every((each) => ONE_THING.has(each.kind));
  });
}

const ONE_THING = new Set([
  ts.SyntaxKind.ReturnStatement,
  ts.SyntaxKind.ExpressionStatement,
  ts.SyntaxKind.ThrowStatement,
]);

/** `...{ a, b }` among other properties writes several on one line, and that is all it does. The same of `...[a, b]`. */
export const noPacking = eachNode((node) => {
  if (!ts.isSpreadAssignment(node) && !ts.isSpreadElement(node)) return undefined;
  const packed = bare(node.expression);
  if (!ts.isObjectLiteralExpression(packed) && !ts.isArrayLiteralExpression(packed)) return undefined;
  return 'properties stand by themselves; a spread literal only packs them';
});

/** Without parentheses, `as const` and `satisfies`. */
function bare(expression: ts.Expression): ts.Expression {
  const { isParenthesizedExpression, isAsExpression, isSatisfiesExpression } = ts;
  const wraps = [isParenthesizedExpression, isAsExpression, isSatisfiesExpression].find((is) => is(expression));
  return wraps ? bare((expression as ts.ParenthesizedExpression).expression) : expression;
}

/** Where a member has to be hidden from whoever prints, logs or copies the object, and not from the compiler alone. */
const HIDDEN: Readonly<Record<string, string>> = { 'services/kernel/secret.ts': '#text' };

/** `private readonly x`: the compiler's own word. Neither `#x` nor `_x`. */
export const onePrivateStyle = eachNode((node, { path, tree }) => {
  const isMember =
    ts.isClassElement(node) || (ts.isParameter(node) && ts.isParameterPropertyDeclaration(node, node.parent));
  const name = isMember ? (node.name?.getText(tree) ?? '') : '';
  if (!/^[#_]/.test(name) || HIDDEN[path] === name) return undefined;
  return `a private member is marked by "private": ${name}`;
}, itsName);

/** Words that end like a participle and are none, or are things by now. */
const NOUNS = new Set(['Feed', 'Seed', 'Speed', 'Need', 'Embed', 'Bed', 'Shed', 'Deed', 'Breed', 'Reed', 'Hundred']);
const IRREGULAR = new Set(
  (
    'Asked Begun Bound Bought Broken Built Chosen Done Drawn Dropped Fed Found Given Gone Heard Held Hidden Kept Known ' +
    'Laid Led Left Lent Lost Made Meant Met Paid Ran Read Said Seen Sent Shown Shut Sold Spent Stood Swept Taken Told ' +
    'Thrown Understood Went Won Worn Written'
  ).split(' '),
);

/**
 * A type is a thing, and its name ends in a noun. What ends in -ed, or is one of the irregular forms, says what was done to
 * it. Events are what was done: their types in a context's events.ts may be called so.
 */
export const nounsForTypes = eachNode((node, { path }) => {
  const isType = ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isClassDeclaration(node);
  if (!isType || !node.name || /^services\/[^/]+\/events\.ts$/.test(path)) return undefined;
  const word = /[A-Z][a-z]*$/.exec(node.name.text)?.[0] ?? '';
  const isParticiple = IRREGULAR.has(word) || (/[a-z]ed$/.test(word) && !NOUNS.has(word));
  return isParticiple ? `a type is named by a noun: ${node.name.text}` : undefined;
}, itsName);

/** Files of a context that may touch the world, and why. */
const EDGES: Readonly<Record<string, string>> = {
  'part.ts': 'starts what the context does by itself, with the engines that it gets',
};

/** Node's modules that compute and touch nothing. */
const PURE_MODULES = new Set(['node:crypto', 'node:buffer', 'node:util', 'node:assert']);
const WORLDLY = new Set(['setTimeout', 'setInterval', 'setImmediate', 'fetch']);

/**
 * A context decides, and somebody else acts: its files know neither the network, files, timers, Nest, adapters nor the
 * environment, but for the edges that are named. A context is a folder of services with an events.ts.
 */
export const pureContexts = (contexts: ReadonlySet<string>): SyntaxRule =>
  eachNode((node, source) => {
    const [, context, file = ''] = /^services\/([^/]+)\/(.+)$/.exec(source.path) ?? [];
    if (!context || !contexts.has(context) || isTest(source.path) || file in EDGES) return undefined;
    const reached = reachedBy(source, node);
    return reached && `a context is pure, and this reaches for ${reached}`;
  });

function reachedBy(source: Source, node: ts.Node): string | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
    const specifier = node.moduleSpecifier && ts.isStringLiteral(node.moduleSpecifier) ? node.moduleSpecifier.text : '';
    const path = posix.join(posix.dirname(source.path), specifier);
    const isOutside =
      specifier.startsWith('.') && /^services\/(adapters|runtime)\/|^(gateway|projections|ops)\//.test(path);
    const isWorld = specifier.startsWith('node:') ? !PURE_MODULES.has(specifier) : specifier.startsWith('@nestjs/');
    return isOutside || isWorld ? specifier : undefined;
  }
  if (ts.isPropertyAccessExpression(node) && node.expression.getText(source.tree) === 'process') return 'process';
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && WORLDLY.has(node.expression.text)) {
    return node.expression.text;
  }
  return undefined;
}
