import { availableParallelism } from 'node:os';
import { env } from 'node:process';
import { defineConfig, type Plugin } from 'vitest/config';
import { mutantPlugin } from './ops/check/mutant-plugin.js';

const plugins: Plugin[] = env.AGON_MUTANT ? [mutantPlugin(env.AGON_MUTANT)] : [];

export default defineConfig({
  plugins,
  // As Node resolves it. Vite would take its other build, and GraphQL refuses schemas of another copy of itself.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    include: ['{services,projections,sandbox-runner,gateway,sdk,ops}/**/*.spec.ts'],
    exclude: ['**/node_modules/**', 'dist/**'],
    environment: 'node',
    pool: 'forks',
    // Many specs wait for engines rather than work.
    maxWorkers: availableParallelism(),
    testTimeout: 180_000,
    hookTimeout: 180_000,
    coverage: {
      provider: 'v8',
      include: ['{services,projections,sandbox-runner,gateway,sdk,ops}/**/*.ts'],
      exclude: ['**/*.spec.ts', '**/*.contract.ts', 'ops/bench/**', 'ops/chaos/**', 'ops/check/**'],
      reporter: ['json-summary'],
    },
  },
});
