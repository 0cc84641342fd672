import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { env, kill, stdout } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@clickhouse/client';
import { feed } from '../../projections/analytics/feed.js';
import { asAnalyticsError, ClickHouseSink, clickHouseAt, DATABASE } from '../../projections/sinks/clickhouse.js';
import { AgonError, isAgonError } from '../../services/kernel/index.js';
import { folderLayout, holderOf } from '../../services/runtime/data-folder.js';
import { type Config, parseConfig } from '../../services/runtime/settings.js';
import { adoptRebuild, ChdbEngine, rebuildFolders } from '../engines/chdb.js';
import { withLog } from './offline.js';
import { colour, EXIT, type Outcome, type OutputOptions, progress, table, toJson } from './output.js';

interface QueryOptions extends OutputOptions {
  readonly csv?: boolean;
  readonly limit: number;
  readonly timeout: number;
}

const HAND_OVER_MS = 30_000;
const RESTART_MS = 10_000;

/** Asks whoever has the analytics: a server, the arena that runs, or an engine that is started for this one question. */
export async function query(dataDir: string, sql: string, options: QueryOptions): Promise<number | Outcome> {
  const config = parseConfig({ dataDir }, env);
  const running = config.clickhouseUrl ?? (await runningAt(config.dataDir));
  if (running !== undefined) return ask(running, sql, options);
  return withEngine(config, folderLayout(config.dataDir).analytics, async (engine) => {
    await catchUp(config, engine, options);
    return ask(engine.url, sql, options);
  });
}

/** Builds a second set of tables from the log; a kill leaves it where it was, and the next call goes on from there. */
export async function rebuild(dataDir: string, options: OutputOptions): Promise<Outcome> {
  const config = parseConfig({ dataDir }, env);
  if (config.clickhouseUrl !== undefined) return refill(config, config.clickhouseUrl, options);
  const folder = folderLayout(config.dataDir).analytics;
  const { building, rebuilt } = rebuildFolders(folder);
  rmSync(rebuilt, { recursive: true, force: true });
  const startedMs = performance.now();
  const events = await withEngine(config, building, (engine) => catchUp(config, engine, options));
  renameSync(building, rebuilt);
  const swapped = await handOver(config.dataDir, folder);
  const seconds = (performance.now() - startedMs) / 1000;
  const how = swapped ? 'the running arena has taken them over' : 'they are in place';
  const text = `${colour.green('rebuilt')}: ${events} events in ${seconds.toFixed(1)} s; ${how}.`;
  return { json: { events, seconds: Number(seconds.toFixed(2)), swapped }, text };
}

/** A server's tables are emptied and filled again: they are not ours to exchange behind its users' backs. */
const refill = (config: Config, url: string, options: OutputOptions): Promise<Outcome> =>
  withSink(config, url, async (sink) => {
    await sink.reset();
    const events = await fill(config, sink, options);
    return { json: { events }, text: `${colour.green('rebuilt')}: ${events} events.` };
  });

async function withSink<T>(config: Config, url: string, use: (sink: ClickHouseSink) => Promise<T>): Promise<T> {
  const sink = new ClickHouseSink(clickHouseAt(url));
  try {
    await sink.migrate(config.analyticsDays);
    return await use(sink);
  } finally {
    await sink.close();
  }
}

/** The arena's engine takes over a rebuild whenever it starts: ending it is all that is needed. */
async function handOver(dataDir: string, folder: string): Promise<boolean> {
  const holder = engineOf(dataDir);
  if (!holder || (await runningAt(dataDir)) === undefined) {
    adoptRebuild(folder);
    return false;
  }
  kill(holder.pid, 'SIGTERM');
  const taken = () => !existsSync(rebuildFolders(folder).rebuilt) && engineOf(dataDir)?.pid !== holder.pid;
  for (let waitedMs = 0; !taken(); waitedMs += 50) {
    if (waitedMs > HAND_OVER_MS) {
      throw new AgonError(
        'ANALYTICS.NOT_TAKEN_OVER',
        'The rebuild is complete; the arena takes it over at its next start.',
      );
    }
    await sleep(50);
  }
  return true;
}

async function withEngine<T>(config: Config, folder: string, use: (engine: ChdbEngine) => Promise<T>): Promise<T> {
  // Refused before an engine is started: a folder without a log has nothing to tell.
  await withLog(config.dataDir, async () => {});
  const engine = new ChdbEngine(folder);
  try {
    await engine.ensure();
    return await use(engine);
  } finally {
    await engine.stop();
  }
}

const catchUp = (config: Config, engine: ChdbEngine, options: OutputOptions): Promise<number> =>
  withSink(config, engine.writerUrl, (sink) => fill(config, sink, options));

async function fill(config: Config, sink: ClickHouseSink, options: OutputOptions): Promise<number> {
  const bar = progress('analytics');
  return withLog(config.dataDir, async (log) => {
    const onProgress = (done: number, total: number) => {
      if (!options.json) bar.at(done, total);
    };
    const filling = feed({ log, connect: async () => sink, once: true, onProgress });
    await filling.done;
    bar.end();
    return filling.position();
  });
}

function engineOf(dataDir: string): { url: string; pid: number } | undefined {
  try {
    return JSON.parse(readFileSync(folderLayout(dataDir).analyticsAddress, 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * The address of the arena's engine, if it answers. An arena that was killed leaves the address behind, and nobody there;
 * one that is alive may be starting its engine again.
 */
async function runningAt(dataDir: string): Promise<string | undefined> {
  for (let waitedMs = 0; ; waitedMs += 250) {
    const url = engineOf(dataDir)?.url;
    if (url === undefined) return undefined;
    const ping = fetch(`${url}/ping`).then(
      (response) => response.ok,
      () => false,
    );
    if (await ping) return url;
    if (holderOf(dataDir) === undefined || waitedMs >= RESTART_MS) return undefined;
    await sleep(250);
  }
}

interface Rows {
  readonly meta: readonly { readonly name: string; readonly type: string }[];
  readonly data: readonly (readonly unknown[])[];
}

async function ask(url: string, sql: string, options: QueryOptions): Promise<number | Outcome> {
  const client = createClient({
    url,
    database: DATABASE,
    request_timeout: (options.timeout + 30) * 1000,
    log: { level: 127 },
  });
  const settings = {
    readonly: '1' as const,
    max_execution_time: options.timeout,
    max_result_rows: `${options.limit}`,
    result_overflow_mode: 'throw' as const,
    output_format_json_quote_64bit_integers: 1 as const,
    output_format_json_quote_decimals: 1 as const,
  };
  try {
    if (options.csv) {
      const result = await client.query({ query: sql, format: 'CSVWithNames', clickhouse_settings: settings });
      stdout.write(await result.text());
      return EXIT.ok;
    }
    const result = await client.query({ query: sql, format: 'JSONCompact', clickhouse_settings: settings });
    const { meta, data } = (await result.json()) as unknown as Rows;
    const rows = data.map((row) => Object.fromEntries(meta.map(({ name }, i) => [name, row[i]])));
    return { json: { columns: meta, rows }, text: textOf(meta, data) };
  } catch (error) {
    throw explained(asAnalyticsError(error), options);
  } finally {
    await client.close();
  }
}

function textOf(meta: Rows['meta'], data: Rows['data']): string {
  const isNumber = (type: string) => /^(Nullable\()?(U?Int|Float|Decimal)/.test(type);
  const head = meta.map(({ name, type }) => (isNumber(type) ? `>${name}` : name));
  const rows = data.map((row) => row.map((cell) => (typeof cell === 'string' ? cell : toJson(cell))));
  return `${table(head, rows)}\n\n${colour.dim(`${data.length} ${data.length === 1 ? 'row' : 'rows'}`)}`;
}

/** What to do about it, where there is something to do. */
function explained(error: AgonError, { limit, timeout }: QueryOptions): AgonError {
  const advice: Readonly<Record<number, string>> = {
    47: 'DESCRIBE TABLE <name> lists the columns of a table.',
    60: 'SHOW TABLES lists the tables; docs/analytics.md says what is in them.',
    159: `It took longer than ${timeout} s; --timeout allows more, up to what the engine allows its readers.`,
    164: 'Analytics come from the log alone: this command reads.',
    241: 'It took more memory than a reader has: group or filter more.',
    396: `It has more than ${limit} rows; --limit allows more, and LIMIT asks for fewer.`,
  };
  const code = Number(error.details.clickhouseCode);
  const more = advice[code];
  if (!isAgonError(error, 'ANALYTICS.REFUSED') || more === undefined) return error;
  return new AgonError(error.code, `${error.message} ${more}`, error.details);
}
