import { join } from 'node:path';
import { Writable } from 'node:stream';
import type { ViteUserConfig } from 'vitest/config';
import { createVitest, type TestModule, type TestSpecification, type Vitest } from 'vitest/node';
import { packageRoot } from '../../../services/runtime/package.js';
import type { Fault } from './fault.js';
import { isAssertion, type Run, type SpecError } from './verdict.js';

/** A fault that makes a spec wait without end shall not make everybody wait. */
const SPEC_MAX_MS = 30_000;
/** The first hook that asks for an engine waits for its start. */
const HOOK_MAX_MS = 60_000;
const RUN_MAX_MS = 150_000;
const PROJECT = 'faults';

/** The fault that is being tried, and how often its file was loaded with it. */
class Planter {
  private fault: Fault | undefined;
  planted = 0;

  plant(fault: Fault | undefined): void {
    this.fault = fault;
    this.planted = 0;
  }

  /** For vite, which asks for every source that it loads. The files on disk are never touched. */
  readonly plugin = {
    name: 'agon-faults',
    enforce: 'pre' as const,
    transform: (code: string, id: string): string | undefined => {
      if (!this.fault || id.split('?', 1)[0] !== pathOf(this.fault.file)) return undefined;
      this.planted++;
      return code.replace(this.fault.find, () => this.fault?.replace ?? '');
    },
  };
}

const pathOf = (file: string) => join(packageRoot, file).replaceAll('\\', '/');

/**
 * One vitest for all faults. It keeps what it has made of the sources, and shared engines once they are started; each run
 * of a spec file has a fresh process. What a spec starts from `dist/` has no fault in it.
 */
export class Lane {
  private readonly planter = new Planter();
  private readonly errors: SpecError[] = [];
  private vitest: Vitest | undefined;

  /** Runs a spec file, with a fault or, for the baseline, without; with one, not further than to the first assertion. */
  async run(spec: string, fault?: Fault): Promise<{ readonly run: Run; readonly planted: number }> {
    this.vitest ??= await this.start();
    const { vitest, planter, errors } = this;
    const [specification] = await vitest.globTestSpecifications([pathOf(spec)]);
    if (!specification) throw new Error(`vitest does not find the specs of ${spec}.`);
    planter.plant(fault);
    errors.length = 0;
    if (fault) vitest.invalidateFile(pathOf(fault.file));
    const run = (await this.ended(specification)) ?? { ...NOTHING, errors: [...errors], gaveUpAfterMs: RUN_MAX_MS };
    if (run.gaveUpAfterMs !== undefined) this.abandon();
    else if (fault) vitest.invalidateFile(pathOf(fault.file));
    return { run, planted: planter.planted };
  }

  async close(): Promise<void> {
    await this.vitest?.close();
    this.vitest = undefined;
  }

  private start(): Promise<Vitest> {
    const files = { globalSetup: 'ops/check/shared-engines.ts', setupFiles: 'ops/check/faults/setup.ts' };
    const project = {
      extends: true as const,
      plugins: [this.planter.plugin],
      test: { name: PROJECT, include: ['**/*.spec.ts'], ...files },
    };
    const reporter = { onTestCaseResult: this.heard.bind(this) };
    const limits = { testTimeout: SPEC_MAX_MS, hookTimeout: HOOK_MAX_MS };
    const options = { root: packageRoot, watch: false, project: PROJECT, reporters: [reporter], ...limits };
    const overrides: ViteUserConfig = { test: { projects: [project] } };
    return createVitest('test', options, overrides, { stdout: nowhere(), stderr: nowhere() });
  }

  private heard(test: { result(): { readonly errors?: readonly SpecError[] | undefined } }): void {
    const errors = test.result().errors ?? [];
    this.errors.push(...errors);
    if (this.planter.planted > 0 && errors.some(isAssertion)) void this.vitest?.cancelCurrentRun('test-failure');
  }

  /** What the specs came to; undefined if they do not come to an end. */
  private async ended(specification: TestSpecification): Promise<Run | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, RUN_MAX_MS, undefined);
    });
    const result = await Promise.race([this.vitest?.runTestSpecifications([specification]), late]);
    clearTimeout(timer);
    if (!result) return undefined;
    const own = result.testModules.flatMap(errorsBesides);
    const tests = result.testModules.flatMap((module) => [...module.children.allTests()]);
    const named = (state: string) => tests.filter((test) => test.result().state === state).map((test) => test.fullName);
    return {
      passed: named('passed').length,
      skipped: named('skipped'),
      errors: [...this.errors, ...own],
      outside: result.unhandledErrors as SpecError[],
    };
  }

  /** A spec that turns in circles cannot be stopped from within: the next one gets another vitest. */
  private abandon(): void {
    this.vitest?.close().catch(() => {});
    this.vitest = undefined;
  }
}

/** What specs and engines print while a fault is in them is of no use to anybody. */
const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });

const NOTHING = { passed: 0, skipped: [], outside: [] };

/** Of loading the file, and of hooks. */
const errorsBesides = (module: TestModule): SpecError[] =>
  [module, ...module.children.allSuites()].flatMap((suite) => [...suite.errors()]);
