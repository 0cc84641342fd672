import ts from 'typescript';
import { lineOf, type Problem, type Source } from './tidy-source.js';

const LINES_MAX = 12;

/** Where the same is written twice for a reason. */
const ALLOWED: readonly (readonly [path: RegExp, reason: string])[] = [
  [/^proto\/gen\//, 'is generated'],
  [/\/table\.ts$/, 'is a table: columns and their types'],
  [/^projections\/sinks\/(migrations|entities)[^/]*\.ts$/, 'is a table, as it was once released'],
];

interface Line {
  readonly text: string;
  readonly line: number;
}

interface Place {
  readonly source: Source;
  readonly lines: readonly Line[];
  readonly at: number;
}

/**
 * No passage of more than twelve lines stands twice. What counts are lines of code, trimmed, in one file each: not blank
 * ones, comments, imports, re-exports, nor those of punctuation and nothing else. The lines have to be the same to the
 * letter, names and strings included; a passage that is alike in its shape only is not found. Every run of thirteen such
 * lines is looked up among all others; where one is found, both are followed to their ends, and both places are named once.
 */
export function repeatedPassages(sources: readonly Source[]): Problem[] {
  const problems: Problem[] = [];
  const first = new Map<string, Place>();
  const size = LINES_MAX + 1;
  for (const source of sources) {
    if (ALLOWED.some(([pattern]) => pattern.test(source.path))) continue;
    const lines = codeLines(source);
    for (let at = 0; at + size <= lines.length; at++) {
      const text = textOf(lines, at, size);
      const place = first.get(text);
      if (!place) {
        first.set(text, { source, lines, at });
        continue;
      }
      const length = place.lines === lines && place.at + size > at ? 0 : sameLength(place, lines, at);
      if (length === 0) continue;
      problems.push(problemOf(place, source, lines, at, length));
      // What follows belongs to the same passage.
      at += length - 1;
    }
  }
  return problems;
}

const textOf = (lines: readonly Line[], at: number, size: number) =>
  lines
    .slice(at, at + size)
    .map(({ text }) => text)
    .join('\n');

function sameLength(place: Place, lines: readonly Line[], at: number): number {
  let length = 0;
  while (place.lines[place.at + length] && place.lines[place.at + length]?.text === lines[at + length]?.text) length++;
  return length;
}

function problemOf(place: Place, { path }: Source, lines: readonly Line[], at: number, length: number): Problem {
  const range = (all: readonly Line[], from: number) => `${all[from]?.line}-${all[from + length - 1]?.line}`;
  const other = `${place.source.path}:${range(place.lines, place.at)}`;
  const line = lines[at]?.line ?? 0;
  return { path, line, why: `lines ${range(lines, at)} stand at ${other} as well: ${length} lines of code` };
}

/** Lines with a word of code on them: comments are no tokens. */
function codeLines(source: Source): Line[] {
  const { tree } = source;
  const code = new Set<number>();
  const look = (node: ts.Node) => {
    if (ts.isImportDeclaration(node) || (ts.isExportDeclaration(node) && node.moduleSpecifier)) return;
    const parts = node.getChildren(tree).filter((part) => !ts.isJSDoc(part));
    parts.forEach(look);
    if (parts.length > 0 || node.getEnd() === node.getStart(tree)) return;
    const end = lineOf(source, node.getEnd());
    for (let line = lineOf(source, node.getStart(tree)); line <= end; line++) code.add(line);
  };
  look(tree);
  return tree.text
    .split('\n')
    .map((row, i) => ({ text: row.trim(), line: i + 1 }))
    .filter(({ text, line }) => code.has(line) && /\w/.test(text));
}
