import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'vitest';
import { analyticsSuite } from '../analytics/analytics.contract.js';
import { chdbInstalled } from '../analytics/installed.contract.js';
import { openChdb } from './chdb.js';
import { ClickHouseSink } from './clickhouse.js';

if (chdbInstalled) {
  analyticsSuite('chdb, in this process', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agon-chdb-'));
    const open = await openChdb();
    const held = open(folder);
    return {
      sink: async (database) => new ClickHouseSink(open(folder), database),
      stop: async () => {
        await held.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  });
} else {
  it.skipIf(true)('analytics need the optional package chdb, which is not installed', () => {});
}
