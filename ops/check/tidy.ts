import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../services/runtime/package.js';

const TOP_LEVEL = ['services', 'projections', 'proto', 'sandbox-runner', 'gateway', 'contracts', 'sdk', 'ops', 'docs'];
const WEAK_NAMES = /\b(?:class|interface|type)\s+\w*(?:Manager|Helper|Util|Utils|Impl|Base)\b/;

interface Rule {
  readonly why: string;
  applies(path: string): boolean;
  /** Line numbers, from 1, that break the rule. */
  breaks(lines: readonly string[]): number[];
}

const isTest = (path: string) => /\.(spec|contract)\.ts$/.test(path);
const isCode = (path: string) => /\.tsx?$/.test(path) && !path.startsWith('proto/gen/');
const matching = (pattern: RegExp) => (lines: readonly string[]) =>
  lines.flatMap((line, i) => (pattern.test(line) ? [i + 1] : []));

/** The words are put together here so that this file does not break its own rules. */
const word = (...parts: string[]) => new RegExp(`\\b${parts.join('')}\\b`);

const RULES: readonly Rule[] = [
  { why: 'unfinished work does not land', applies: isCode, breaks: matching(word('(TO', 'DO|FIX', 'ME|XX', 'X)')) },
  {
    why: 'a test that does not run tells nothing',
    applies: isTest,
    breaks: matching(/\b(?:it|test|describe)\.(?:skip|only|todo)\(/),
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

/** Every tracked or new file that breaks a rule of the house. */
export function untidy(): string[] {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: packageRoot })
    .toString()
    .split('\n')
    .filter((path) => path !== '' && existsSync(join(packageRoot, path)));
  const problems = files.filter(isStray).map((path) => `${path}: no such top-level folder is planned`);
  for (const path of files.filter(isCode)) {
    const lines = readFileSync(join(packageRoot, path), 'utf8').trimEnd().split('\n');
    for (const rule of RULES) {
      if (!rule.applies(path)) continue;
      for (const line of rule.breaks(lines)) problems.push(`${path}:${line}: ${rule.why}`);
    }
  }
  return problems;
}

const isStray = (path: string): boolean => {
  const [top, ...rest] = path.split('/');
  return rest.length > 0 && !top?.startsWith('.') && !TOP_LEVEL.includes(top ?? '');
};
