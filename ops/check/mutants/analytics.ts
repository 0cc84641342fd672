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
    name: 'keep the rake of a reversed match in the charts',
    file: 'projections/analytics/schema.ts',
    find: '-rake AS rake_cents',
    replace: 'rake AS rake_cents',
    specs: 'projections/sinks/clickhouse',
  },
  {
    name: 'leave reversals out that were there before the migration',
    file: 'projections/analytics/schema.ts',
    find: "flatMap((table) => filled(database, table, 'reversed_view')),",
    replace: "map((table) => filled(database, table, 'reversed_view')[0] as string),",
    specs: 'projections/sinks/clickhouse',
  },
  {
    name: 'move the analytics checkpoint before the rows',
    file: 'projections/analytics/feed.ts',
    find: 'advance(Promise.all([advancing, written]), last)',
    replace: 'advance(advancing, last)',
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
