import { describe, expect, it } from 'vitest';
import { contentTypeOf, readerLimits, readOnlyStatement, settingsOf } from './chdb-rules.js';

const settings = (query: string, writes = false) => Object.fromEntries(settingsOf(new URLSearchParams(query), writes));

describe('what a reader of analytics may say', () => {
  it.each([
    'SELECT 1',
    'WITH 1 AS x SELECT x',
    '(SELECT 1) UNION ALL (SELECT 2)',
    'SHOW TABLES',
    'DESCRIBE TABLE turns',
    'EXPLAIN SELECT 1',
    "SELECT 'file(x) INTO OUTFILE \\' y' AS t",
    'SELECT profile(1), t.file FROM t',
  ])('%s', (statement) => expect(readOnlyStatement(statement)).toBe(statement));

  it.each([
    "SELECT file('/etc/passwd')",
    "SELECT arrayMap(x -> (file(x)), ['a'])",
    'SELECT `file`(a) FROM t',
    "SELECT 1 INTO OUTFILE 'x'",
    'KILL QUERY WHERE 1',
    'INSERT INTO t SELECT 1',
    'SET readonly = 0',
    'SYSTEM SHUTDOWN',
    '',
  ])('not %s', (statement) => expect(() => readOnlyStatement(statement)).toThrow());

  it('is how an answer looks, and less than its limits', () => {
    expect(settings('')).toEqual(Object.fromEntries(Object.entries(readerLimits).map(([k, v]) => [k, `${v}`])));
    expect(settings('max_execution_time=5').max_execution_time).toBe('5');
    for (const more of ['0', '31', 'x', '-1'])
      expect(settings(`max_execution_time=${more}`).max_execution_time).toBe('30');
    expect(settings('output_format_json_quote_decimals=1&param_a=b&query=x&readonly=2')).toMatchObject({
      output_format_json_quote_decimals: '1',
      param_a: 'b',
    });
    expect(settings('readonly=2')).not.toHaveProperty('readonly');
    expect(() => settings('allow_ddl=1')).toThrow(/readonly/);
    expect(() => settings('a%20b=1')).toThrow();
    expect(settings('insert_deduplicate=0', true)).toEqual({ insert_deduplicate: '0' });
  });

  it('is answered with the type of its format', () => {
    expect(contentTypeOf('JSONEachRow')).toContain('x-ndjson');
    expect(contentTypeOf('JSON')).toContain('application/json');
    expect(contentTypeOf('CSVWithNames')).toContain('text/csv');
    expect(contentTypeOf('Native')).toBe('application/octet-stream');
  });
});
