import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { packageRoot } from '../../services/runtime/package.js';

/**
 * What a page can say of the block that follows, in an HTML comment on the line above it, which readers do not see:
 * `<!-- not run: needs a Kubernetes cluster -->`. CONTRIBUTING.md explains them.
 */
const MARKS = ['not run', 'background', 'after', 'file', 'run', 'exits', 'says', 'types', 'needs', 'network'] as const;
export type Mark = (typeof MARKS)[number];

/** Fences that only show something: what a command prints, and pictures. */
const SHOWN = ['', 'mermaid'];
/** What can be run as it stands. Other languages need a file to be saved as. */
const RUN = ['sh', 'graphql', 'sql', 'diff'];

export interface Block {
  readonly page: string;
  /** Of its first line of text, from 1. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  readonly marks: Readonly<Partial<Record<Mark, string>>>;
}

export interface Page {
  readonly path: string;
  /** What a reader of the page has running in another terminal before the first block. */
  readonly besides?: string;
  readonly blocks: readonly Block[];
}

const COMMENT = /^\s*<!--\s*(.*?)\s*-->\s*$/;
const FENCE = /^(\s*)```(\S*)\s*$/;

/** All blocks of a page in order, without the indentation that their place in a list gives them. */
export function pageOf(path: string, markdown: string): Page {
  const lines = markdown.split('\n');
  const blocks: Block[] = [];
  let besides: string | undefined;
  for (let i = 0; i < lines.length; i++) {
    besides ??= /^<!-- besides: (.*) -->$/.exec(lines[i] ?? '')?.[1];
    const [, indent, language] = FENCE.exec(lines[i] ?? '') ?? [];
    if (indent === undefined || language === undefined) continue;
    const end = lines.findIndex((line, at) => at > i && line.trim() === '```');
    if (end < 0) throw new Error(`${path}:${i + 1}: this block has no end`);
    const text = lines
      .slice(i + 1, end)
      .map((line) => `${line.startsWith(indent) ? line.slice(indent.length) : line}\n`);
    blocks.push({ page: path, line: i + 2, language, text: text.join(''), marks: marksAbove(path, lines, i) });
    i = end;
  }
  return { path, ...(besides === undefined ? {} : { besides }), blocks };
}

function marksAbove(path: string, lines: readonly string[], fence: number): Block['marks'] {
  const marks: Partial<Record<Mark, string>> = {};
  for (let i = fence - 1; i >= 0; i--) {
    const comment = COMMENT.exec(lines[i] ?? '')?.[1];
    if (comment === undefined) break;
    const [, name = '', value = ''] = /^([^:]*):?\s*(.*)$/.exec(comment) ?? [];
    const mark = MARKS.find((each) => each === name);
    if (!mark) throw new Error(`${path}:${i + 1}: there is no mark "${name}"; there are ${MARKS.join(', ')}`);
    marks[mark] = value;
  }
  return marks;
}

/** Whether a block is run; what is neither run, nor shown, nor left out with a reason is a mistake of the page. */
export function isRun({ page, line, language, marks }: Block): boolean {
  const where = `${page}:${line}`;
  if (marks['not run'] !== undefined) {
    if (marks['not run'] === '') throw new Error(`${where}: "not run" wants its reason`);
    return false;
  }
  if (marks.file === undefined && SHOWN.includes(language)) return false;
  if (marks.file === undefined && !RUN.includes(language)) {
    throw new Error(`${where}: nobody knows how to run ${language}: say "file: <path>", or "not run: <reason>"`);
  }
  return true;
}

/** README.md, CONTRIBUTING.md and the guides of docs/. */
export const guides = (): readonly Page[] =>
  ['README.md', 'CONTRIBUTING.md', ...readdirSync(join(packageRoot, 'docs')).map((name) => `docs/${name}`)]
    .filter((path) => path.endsWith('.md'))
    .map((path) => pageOf(path, readFileSync(join(packageRoot, path), 'utf8')));

/** The files of the project that a text names in backticks with a folder, or links to. */
export function filesNamed(path: string, markdown: string): string[] {
  const folders = '(?:services|projections|sandbox-runner|gateway|sdk|proto|ops|docs)';
  const prose = markdown.replace(/```.*?```/gs, '');
  const named = [...prose.matchAll(new RegExp(`\`(${folders}/[\\w./-]+)\``, 'g'))].map(([, file]) => `${file}`);
  const linked = [...prose.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, file]) => join(dirname(path), `${file}`));
  return [...new Set([...named, ...linked])].sort();
}

interface Change {
  readonly before: string;
  readonly after: string;
}

/** What a `diff` block asks for, by file: `+++ path` names one, and `@@` stands where lines are left out. */
export function changesOf({ page, line, text }: Block): ReadonlyMap<string, readonly Change[]> {
  const changes = new Map<string, Change[]>();
  let change: { before: string; after: string } | undefined;
  for (const [i, each] of text.split('\n').slice(0, -1).entries()) {
    const file = /^\+\+\+ (\S+)$/.exec(each)?.[1];
    const inFile = [...changes.values()].at(-1);
    if (file !== undefined || (each === '@@' && inFile)) {
      change = { before: '', after: '' };
      if (file === undefined) inFile?.push(change);
      else changes.set(file, [change]);
    } else if (!change || !/^([-+ ]|$)/.test(each)) {
      throw new Error(`${page}:${line + i}: a change begins with "+++ <path>", its lines with "+", "-" or a space`);
    } else {
      if (!each.startsWith('+')) change.before += `${each.slice(1)}\n`;
      if (!each.startsWith('-')) change.after += `${each.slice(1)}\n`;
    }
  }
  return changes;
}

/** The text with the change made. Where it belongs has to be plain: its old lines are there, and once. */
export function changed(source: string, { before, after }: Change): string {
  const whole = `\n${source}`;
  const at = whole.indexOf(`\n${before}`);
  if (at < 0 || whole.indexOf(`\n${before}`, at + 1) >= 0) {
    throw new Error(`the lines to change are there ${at < 0 ? 'nowhere' : 'more than once'}:\n${before}`);
  }
  return `${source.slice(0, at)}${after}${source.slice(at + before.length)}`;
}
