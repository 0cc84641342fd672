import { createRequire } from 'node:module';

/** Whether the optional package is here. Without it the suites are skipped, by name, and `npm test` lists them. */
export const chdbInstalled = (() => {
  try {
    return createRequire(import.meta.url).resolve('chdb/connection') !== '';
  } catch {
    return false;
  }
})();
