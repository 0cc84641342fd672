import { writeFileSync } from 'node:fs';
import { env } from 'node:process';
import type { TestModule } from 'vitest/node';

export interface FileReport {
  readonly file: string;
  readonly durationMs: number;
  readonly passed: number;
  /** Names of the specs that did not run. */
  readonly skipped: readonly string[];
  /** What failed, and how; a file that cannot be loaded or set up fails without any spec of it having failed. */
  readonly failed: readonly { readonly name: string; readonly message: string }[];
}

/** Writes what became of every spec file to TEST_REPORT, for whoever started vitest. (The product refuses an AGON_* that it does not know.) */
export default class Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly { readonly message: string }[]): void {
    const files = modules.map(reportOf);
    const failed = unhandled.map(({ message }) => ({ name: 'outside of any spec', message: firstLine(message) }));
    const outside: FileReport = { file: '', durationMs: 0, passed: 0, skipped: [], failed };
    writeFileSync(`${env.TEST_REPORT}`, JSON.stringify(failed.length > 0 ? [...files, outside] : files));
  }
}

function reportOf(module: TestModule): FileReport {
  const tests = [...module.children.allTests()];
  const named = (state: string) => tests.filter((test) => test.result().state === state);
  const failed = named('failed').map((test) => ({
    name: test.fullName,
    message: firstLine(test.result().errors?.[0]?.message ?? ''),
  }));
  const own = [...module.errors(), ...[...module.children.allSuites()].flatMap((suite) => suite.errors())];
  for (const { message } of own) failed.push({ name: module.relativeModuleId, message: firstLine(message) });
  for (const { fullName } of named('pending')) failed.push({ name: fullName, message: 'did not come to an end' });
  return {
    file: module.relativeModuleId,
    durationMs: Math.round(module.diagnostic().duration),
    passed: named('passed').length,
    skipped: named('skipped').map((test) => test.fullName),
    failed,
  };
}

const firstLine = (text: string) => text.trim().split('\n', 1)[0] ?? '';
