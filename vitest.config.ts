import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const folders = '{services,projections,sandbox-runner,gateway,sdk,ops}';
const ofTier = (suffix: string) => `${folders}/**/*.${suffix}.ts`;
/** Starts the engines that the specs of a run share, when one of them asks. */
const globalSetup = 'ops/check/shared-engines.ts';

/** The longest files of a tier, so that a run does not end with one of them and idle processors. */
const LONGEST = ['guides.e2e', 'cluster-up.e2e', 'cluster-move.e2e', 'eventstoredb.int', 'agents.int', 'model.spec'];
const place = ({ moduleId }: TestSpecification) =>
  LONGEST.findIndex((name) => moduleId.includes(name)) + 1 || LONGEST.length + 1;
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

/** A spec's tier is in its name: what it needs, and so how long it takes. CONTRIBUTING.md says which is for what. */
export default defineConfig({
  // As Node resolves it. Vite would take its other build, and GraphQL refuses schemas of another copy of itself.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    environment: 'node',
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    maxWorkers: availableParallelism(),
    testTimeout: 180_000,
    hookTimeout: 180_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'specs',
          // They leave nothing behind, and most of their time would go into loading the same modules again.
          isolate: false,
          include: [ofTier('spec')],
          exclude: ['int', 'e2e', 'peers'].map((t) => ofTier(`${t}.spec`)),
        },
      },
      { extends: true, test: { name: 'int', include: [ofTier('int.spec')], globalSetup } },
      { extends: true, test: { name: 'e2e', include: [ofTier('e2e.spec')], globalSetup } },
      { extends: true, test: { name: 'peers', include: [ofTier('peers.spec')] } },
    ],
    coverage: {
      provider: 'v8',
      include: [`${folders}/**/*.ts`],
      exclude: ['**/*.spec.ts', '**/*.contract.ts', 'ops/bench/**', 'ops/chaos/**', 'ops/check/**', 'ops/harness/**'],
      reporter: ['json-summary'],
    },
  },
});
