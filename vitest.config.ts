import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{services,projections,sandbox-runner,gateway,ops}/**/*.spec.ts'],
    environment: 'node',
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
