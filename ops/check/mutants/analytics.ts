import type { Mutant } from './mutant.js';

export const analyticsMutants: readonly Mutant[] = [
  {
    name: 'count what was sent twice as revenue',
    file: 'projections/analytics/charts.ts',
    find: 'FROM revenue FINAL',
    replace: 'FROM revenue',
    specs: 'projections/sinks/clickhouse',
  },
  {
    name: 'move the analytics checkpoint before the rows',
    file: 'projections/analytics/feed.ts',
    find: 'await sink.write(rows);\n      await sink.advance(last);',
    replace: 'await sink.advance(last);\n      await sink.write(rows);',
    specs: 'projections/sinks/clickhouse',
  },
  {
    name: 'round amounts in analytics',
    file: 'projections/analytics/row.ts',
    find: '/^-?\\d{1,18}$/.test(value) ? value :',
    replace: '/^-?\\d{1,18}$/.test(value) ? Number(value) :',
    specs: 'projections/sinks/clickhouse',
  },
  {
    name: 'let a reader of analytics read files',
    file: 'ops/engines/chdb-rules.ts',
    find: '[`"]?file[`"]?\\s*\\(/i.test(bare)',
    replace: '[`"]?nofile[`"]?\\s*\\(/i.test(bare)',
    specs: 'ops/engines/chdb-rules',
  },
  {
    name: 'let a reader of analytics raise the limits',
    file: 'ops/engines/chdb-rules.ts',
    find: 'asked > 0 && asked < limit ? asked : limit',
    replace: 'asked > 0 ? asked : limit',
    specs: 'ops/engines/chdb-rules',
  },
];
