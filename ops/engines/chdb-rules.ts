import { ClickHouseError } from '@clickhouse/client';

/** What a reader's statement may take. */
export const readerLimits = {
  max_execution_time: 30,
  max_memory_usage: 1_000_000_000,
  max_result_rows: 1_000_000,
  max_result_bytes: 256 * 1024 * 1024,
  max_threads: 2,
} as const;

/** What a reader may say about how the answer looks, and no more: nothing that reaches files, networks or limits. */
const READER_SETTINGS =
  /^(output_format_\w+|format_(csv|tsv|custom)_\w+|date_time_output_format|session_timezone|extremes|join_use_nulls|result_overflow_mode|max_block_size|max_rows_to_read|max_rows_to_group_by|use_final|final|log_comment)$/;
/** Parameters of the interface itself, and settings of ClickHouse's HTTP server that the engine does not have. */
const NO_SETTING =
  /^(query|database|default_format|user|password|query_id|session_id|session_timeout|session_check|close_session|quota_key|role|readonly|buffer_size|wait_end_of_query|enable_http_compression|send_progress_in_http_headers|http_\w+|add_http_cors_header|cancel_http_readonly_queries_on_client_close|client_protocol_version|stacktrace|compress|decompress)$/;

/** Settings of a request, in the order in which the session is to have them. A reader's limits can only be lowered. */
export function settingsOf(params: URLSearchParams, writes: boolean): [name: string, value: string][] {
  const settings = new Map<string, string>();
  if (!writes) for (const [name, value] of Object.entries(readerLimits)) settings.set(name, `${value}`);
  for (const [name, value] of params) {
    if ((name === 'compress' || name === 'decompress') && value === '1') {
      throw refuse(48, 'NOT_IMPLEMENTED', `${name}=1 is not spoken here; use HTTP's own compression.`, 501);
    }
    if (NO_SETTING.test(name)) continue;
    if (!/^\w+$/.test(name)) throw refuse(115, 'UNKNOWN_SETTING', `Setting ${name} is not one.`, 404);
    const limit = (readerLimits as Readonly<Record<string, number>>)[name];
    if (writes || name.startsWith('param_') || READER_SETTINGS.test(name)) settings.set(name, value);
    else if (limit !== undefined) settings.set(name, `${lower(Number(value), limit)}`);
    else throw refuse(164, 'READONLY', `Cannot modify '${name}' setting in readonly mode.`, 403);
  }
  return [...settings];
}

/** For ClickHouse, 0 is no limit. */
const lower = (asked: number, limit: number) => (asked > 0 && asked < limit ? asked : limit);

const READS = /^(SELECT|WITH|\(|SHOW|DESCRIBE|EXPLAIN|EXISTS)\b|^\(/;

/**
 * Refuses what the engine's own read-only mode lets through, since it is made for a server and not for a process on
 * somebody's machine: reading files by the function `file`, writing them by INTO OUTFILE, ending others' queries. The
 * statement comes from the engine's own parser, so there is one way to spell each of them.
 */
export function readOnlyStatement(normal: string): string {
  const bare = normal.replaceAll(/'(?:[^'\\]|\\.)*'/gs, "''");
  if (!READS.test(bare)) {
    const [verb] = bare.split(' ');
    throw refuse(164, 'READONLY', `Cannot execute query in readonly mode: ${verb} is not a way to read.`, 403);
  }
  if (/\bINTO OUTFILE\b/i.test(bare)) {
    throw refuse(164, 'READONLY', 'Cannot execute query in readonly mode: INTO OUTFILE writes a file.', 403);
  }
  if (/(?<![\w.])[`"]?file[`"]?\s*\(/i.test(bare)) {
    throw refuse(497, 'ACCESS_DENIED', 'The function file reads files of this machine, which are not analytics.', 403);
  }
  return normal;
}

/** An error of ours in ClickHouse's clothes. */
export function refuse(code: number, type: string, message: string, httpStatus?: number): ClickHouseError {
  const error = new ClickHouseError({ code: `${code}`, type, message });
  return Object.assign(error, httpStatus === undefined ? {} : { httpStatus });
}

export function contentTypeOf(format: string): string {
  if (/^JSON(Compact)?(Strings)?EachRow|^NDJSON/i.test(format)) return 'application/x-ndjson; charset=UTF-8';
  if (/^JSON/i.test(format)) return 'application/json; charset=UTF-8';
  if (/^(TabSeparated|TSV)/i.test(format)) return 'text/tab-separated-values; charset=UTF-8';
  if (/^CSV/i.test(format)) return 'text/csv; charset=UTF-8; header=absent';
  return /^(Pretty|Vertical|Markdown|Values|XML)/i.test(format)
    ? 'text/plain; charset=UTF-8'
    : 'application/octet-stream';
}
