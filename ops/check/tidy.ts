import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { argv, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../services/runtime/package.js';
import { deadExports } from './tidy-exports.js';
import { repeatedPassages } from './tidy-passages.js';
import { isTest, type Problem, parse, type Source } from './tidy-source.js';
import { noPacking, nounsForTypes, onePrivateStyle, pureContexts, shortFunctions } from './tidy-syntax.js';

const TOP_LEVEL = ['services', 'projections', 'proto', 'sandbox-runner', 'gateway', 'contracts', 'sdk', 'ops', 'docs'];
const WEAK_NAMES = /\b(?:class|interface|type)\s+\w*(?:Manager|Helper|Util|Utils|Impl|Base)\b/;

/** A rule that looks at lines, whatever is on them. */
interface LineRule {
  readonly why: string;
  applies(path: string): boolean;
  /** Line numbers, from 1, that break the rule. */
  breaks(lines: readonly string[]): number[];
}

/** Plain JavaScript is looked at for what it imports. */
const isWritten = (path: string) => /\.([cm]?js|tsx?)$/.test(path) && !path.startsWith('proto/gen/');
const isCode = (path: string) => isWritten(path) && /\.tsx?$/.test(path);
const matching = (pattern: RegExp) => (lines: readonly string[]) =>
  lines.flatMap((line, i) => (pattern.test(line) ? [i + 1] : []));

/** The words are put together here so that this file does not break its own rules. */
const word = (...parts: string[]) => new RegExp(`\\b${parts.join('')}\\b`);

const LINE_RULES: readonly LineRule[] = [
  { why: 'unfinished work does not land', applies: isCode, breaks: matching(word('(TO', 'DO|FIX', 'ME|XX', 'X)')) },
  {
    why: 'a test that does not run tells nothing',
    applies: isTest,
    breaks: matching(/\b(?:it|test|describe)(?:\.\w+)*\.(?:skip|only|todo)\b/),
  },
  { why: 'the name says nothing about what it is', applies: isCode, breaks: matching(WEAK_NAMES) },
  {
    why: 'time and chance are injected',
    applies: (path) => /^(services|projections)\//.test(path) && !isTest(path) && !/\/(ids|artifacts)\.ts$/.test(path),
    breaks: matching(/\bDate\.now\(|new Date\(\)|Math\.random\(|randomUUID\(/),
  },
  {
    why: 'output belongs to the command line',
    applies: (path) => isCode(path) && !isTest(path) && !path.startsWith('ops/'),
    breaks: matching(/\bconsole\.\w+\(|process\.std(?:out|err)\b/),
  },
  {
    why: 'the compiler is not silenced',
    applies: (path) => isCode(path) && !path.startsWith('ops/check/'),
    breaks: matching(/@ts-(?:ignore|nocheck|expect-error)|\bas any\b/),
  },
];

/** Rules that look at code, and what breaks them. Single files are all judged by one rule, and then by the next. */
const CODE_RULES = {
  functions: (sources) => sources.flatMap(shortFunctions),
  packing: (sources) => sources.flatMap(noPacking),
  members: (sources) => sources.flatMap(onePrivateStyle),
  types: (sources) => sources.flatMap(nounsForTypes),
  contexts: (sources) => sources.flatMap(pureContexts(contextsAmong(sources))),
  exports: deadExports,
  passages: repeatedPassages,
} as const satisfies Record<string, (sources: readonly Source[]) => Problem[]>;

type CodeRule = keyof typeof CODE_RULES;

/** Rules that the code is still being brought to: `node dist/ops/check/tidy.js` shows what breaks them, the gate does not. */
const PENDING: readonly CodeRule[] = ['functions', 'packing', 'types', 'exports', 'passages'];

/** What breaks the rules about code, in files by their paths; each is parsed once. */
export function untidyCode(files: ReadonlyMap<string, string>, but: readonly CodeRule[] = []): string[] {
  const sources = [...files].map(([path, text]) => parse(path, text));
  const rules = Object.entries(CODE_RULES).filter(([name]) => !but.includes(name as CodeRule));
  return rules.flatMap(([, rule]) => rule(sources)).map(({ path, line, why }) => `${path}:${line}: ${why}`);
}

function contextsAmong(sources: readonly Source[]): ReadonlySet<string> {
  return new Set(sources.flatMap(({ path }) => /^services\/([^/]+)\/events\.ts$/.exec(path)?.slice(1) ?? []));
}

const projectFiles = (): string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: packageRoot })
    .toString()
    .split('\n')
    .filter((path) => path !== '' && existsSync(join(packageRoot, path)));

/** What comes before `.spec.ts` in the name of a file that needs more than Node. */
const TIERS = ['int', 'e2e', 'peers'] as const;
const SPEC = /^[^.]+\.(?:(\w+)\.)?spec\.ts$/;
const LOOKS_LIKE_SPECS = /[._-](?:spec|test)s?\.[cm]?[jt]sx?$/;

/** Every spec file of a tier: `specs`, which needs nothing, or one of the others. */
export const specFilesOf = (tier: string): string[] =>
  projectFiles().filter((path) => {
    const match = SPEC.exec(basename(path));
    return match !== null && (match[1] ?? 'specs') === tier;
  });

/** A file that looks like specs, and that no tier would run. */
const isOfNoTier = (path: string): boolean => {
  if (!LOOKS_LIKE_SPECS.test(path)) return false;
  const match = SPEC.exec(basename(path));
  return match === null || (match[1] !== undefined && !TIERS.some((tier) => tier === match[1]));
};

/** Every tracked or new file that breaks a rule of the house. */
export function untidy(but: readonly CodeRule[] = PENDING): string[] {
  const files = projectFiles();
  const problems = files.filter(isStray).map((path) => `${path}: no such top-level folder is planned`);
  for (const path of files.filter(isOfNoTier)) problems.push(`${path}: no tier runs it: ${TIERS.join(', ')}, or none`);
  const texts = new Map<string, string>();
  for (const path of files.filter(isWritten)) {
    const text = readFileSync(join(packageRoot, path), 'utf8');
    texts.set(path, text);
    const lines = text.trimEnd().split('\n');
    for (const rule of isCode(path) ? LINE_RULES : []) {
      if (!rule.applies(path)) continue;
      for (const line of rule.breaks(lines)) problems.push(`${path}:${line}: ${rule.why}`);
    }
  }
  return [...problems, ...untidyCode(texts, but)];
}

const isStray = (path: string): boolean => {
  const [top, ...rest] = path.split('/');
  return rest.length > 0 && !top?.startsWith('.') && !TOP_LEVEL.includes(top ?? '');
};

if (argv[1] === fileURLToPath(import.meta.url))
  stdout.write(
    untidy([])
      .map((each) => `${each}\n`)
      .join(''),
  );
