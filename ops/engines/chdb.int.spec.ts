import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@clickhouse/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { analyticsSuite, recorded } from '../../projections/analytics/analytics.contract.js';
import { chdbInstalled } from '../../projections/analytics/installed.contract.js';
import { ClickHouseSink, clickHouseAt } from '../../projections/sinks/clickhouse.js';
import { ChdbEngine } from './chdb.js';

const inFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), 'agon-chdb-'));
  return { folder: join(folder, 'analytics'), remove: () => rmSync(folder, { recursive: true, force: true }) };
};

if (!chdbInstalled) {
  it.skipIf(true)('the analytics engine needs the optional package chdb, which is not installed', () => {});
} else {
  analyticsSuite('chdb, over HTTP', async () => {
    const { folder, remove } = inFolder();
    const engine = new ChdbEngine(folder);
    await engine.ensure();
    return {
      sink: async (database) => new ClickHouseSink(clickHouseAt(engine.writerUrl), database),
      stop: async () => {
        await engine.stop();
        remove();
      },
    };
  });

  describe('the analytics engine', () => {
    const { folder, remove } = inFolder();
    const engine = new ChdbEngine(folder);
    let sink: ClickHouseSink;
    beforeAll(async () => {
      await engine.ensure();
      sink = new ClickHouseSink(clickHouseAt(engine.writerUrl));
      await sink.migrate();
      await sink.insert([1, 2, 3].map((position) => recorded(position, 'PromptProven', { agentId: `a.${position}` })));
    });
    afterAll(async () => {
      await engine.stop();
      remove();
    });

    const ask = (path: string, init?: RequestInit) => fetch(`${engine.url}${path}`, init);
    const read = async (sql: string, init?: RequestInit) => {
      const response = await ask(`/?query=${encodeURIComponent(sql)}`, init);
      return {
        status: response.status,
        code: response.headers.get('x-clickhouse-exception-code'),
        text: await response.text(),
      };
    };

    it('answers as a ClickHouse server does', async () => {
      expect(await (await ask('/ping')).text()).toBe('Ok.\n');
      expect(await (await ask('/')).text()).toBe('Ok.\n');
      expect(await read('SELECT 1, 2')).toEqual({ status: 200, code: null, text: '1\t2\n' });
      expect(await (await ask('/', { method: 'POST', body: 'SELECT count() FROM events FINAL' })).text()).toBe('3\n');
      expect(await (await ask('/?query=SELECT%201', { method: 'POST', body: '+ 41 AS n' })).text()).toBe('42\n');
      const json = await ask(
        '/?default_format=JSON&query=SELECT%20agent_id%20FROM%20prompt_proofs%20ORDER%20BY%20position',
      );
      expect(json.headers.get('content-type')).toContain('application/json');
      expect(json.headers.get('x-clickhouse-format')).toBe('JSON');
      expect(await json.json()).toMatchObject({ rows: 3, data: [{ agent_id: 'a.1' }, {}, {}] });
      const csv = await ask('/?query=SELECT%201%20FORMAT%20CSVWithNames&query_id=mine');
      expect(csv.headers.get('content-type')).toContain('text/csv');
      expect(csv.headers.get('x-clickhouse-query-id')).toBe('mine');
      expect(await csv.text()).toBe('"1"\n1\n');
    });

    it('binds parameters and takes settings of how an answer looks', async () => {
      const text = `it's a "tab"\t\\ and 100% {x:Int8}`;
      const reader = createClient({ url: engine.url });
      const rows = await reader.query({
        query: 'SELECT {text:String} AS text, {n:Int64} AS n, {list:Array(String)} AS list',
        query_params: { text, n: '9007199254740993', list: ["a'b", 'c'] },
        format: 'JSONEachRow',
        clickhouse_settings: { output_format_json_quote_64bit_integers: 1 },
      });
      expect(await rows.json()).toEqual([{ text, n: '9007199254740993', list: ["a'b", 'c'] }]);
      expect((await reader.ping()).success).toBe(true);
      await reader.close();
      const zipped = createClient({ url: engine.url, compression: { response: true, request: false } });
      expect(await (await zipped.query({ query: 'SELECT 7 AS n', format: 'JSONEachRow' })).json()).toEqual([{ n: 7 }]);
      await zipped.close();
    });

    const refused: readonly [sql: string, status: number, code: string][] = [
      ['INSERT INTO events (position) VALUES (9)', 403, '164'],
      ['DROP TABLE events', 403, '164'],
      ['TRUNCATE TABLE progress', 403, '164'],
      ['CREATE TABLE x (a Int8) ENGINE = Memory', 403, '164'],
      ['SET readonly = 0', 403, '164'],
      ['KILL QUERY WHERE 1', 403, '164'],
      ['SYSTEM SHUTDOWN', 403, '164'],
      ["SELECT 1 INTO OUTFILE '/tmp/agon-should-not-exist'", 403, '164'],
      ["SELECT file('/etc/passwd')", 403, '497'],
      ["SELECT arrayMap(x -> `file`(x), ['/etc/passwd'])", 403, '497'],
      ["SELECT /* '*/ file /* x */ ('/etc/passwd')", 403, '497'],
      ["EXPLAIN SELECT file('/etc/passwd')", 403, '497'],
      ["SELECT * FROM file('/etc/passwd', 'LineAsString')", 403, '497'],
      ['SELECT * FROM default.`/etc/passwd`', 403, '164'],
      ["SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')", 403, '164'],
      ["SELECT * FROM executable('id', 'CSV', 'a String')", 403, '164'],
      ['SELECT 1 SETTINGS max_execution_time = 1000', 403, '164'],
      ['SELECT 1; DROP TABLE events', 400, '62'],
      ['SELECT 1 FROM', 400, '62'],
      ['SELECT * FROM nowhere', 404, '60'],
    ];
    it.each(refused)('refuses a reader: %s', async (sql, status, code) => {
      const answer = await read(sql);
      expect(answer).toMatchObject({ status, code });
      expect(answer.text).toMatch(new RegExp(`^Code: ${code}\\. DB::Exception: .+ \\([A-Z_]+\\)\\n$`, 's'));
    });

    it('finds nothing wrong with a text that only looks wrong', async () => {
      expect((await read("SELECT 'file(1) INTO OUTFILE \\'x\\'' AS text")).text).toBe("file(1) INTO OUTFILE \\'x\\'\n");
      expect((await read("SHOW TABLES LIKE 'turns'")).text).toBe('turns\n');
      expect((await read('WITH 1 AS x SELECT x')).text).toBe('1\n');
      expect((await read('DESCRIBE TABLE turns')).text).toContain('position\tUInt64');
    });

    it('lets a reader lower the limits, not raise them', async () => {
      const value = async (setting: string) => {
        const answer = await ask(`/?max_execution_time=${setting}&query=SELECT%20getSetting('max_execution_time')`);
        return (await answer.text()).trim();
      };
      expect(await value('5')).toBe('5');
      expect(await value('500')).toBe('30');
      expect(await value('0')).toBe('30');
      const other = await ask('/?allow_introspection_functions=1&query=SELECT%201');
      expect([other.status, other.headers.get('x-clickhouse-exception-code')]).toEqual([403, '164']);
      const large = await read('SELECT number FROM numbers(2000000)');
      expect(large).toMatchObject({ code: '396' });
    });

    it('lets nobody in under another name', async () => {
      const as = (user: string, key: string) =>
        read('SELECT 1', { headers: { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': key } });
      expect(await as('reader', '')).toMatchObject({ status: 200 });
      expect(await as('writer', 'guess')).toMatchObject({ status: 403, code: '516' });
      expect(await as('admin', '')).toMatchObject({ status: 403, code: '516' });
      const status = await new Promise((resolve) => {
        const { port } = new URL(engine.url);
        request({ host: '127.0.0.1', port, path: '/ping', headers: { host: 'evil.example' } }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        }).end();
      });
      expect(status).toBe(403);
    });

    it('serves many readers and a writer at once', async () => {
      const reads = Array.from({ length: 12 }, () => read('SELECT count() FROM events FINAL WHERE position <= 3'));
      const writes = [4, 5].map((position) => sink.insert([recorded(position, 'PromptProven', { agentId: 'b.c' })]));
      for (const { text } of await Promise.all(reads)) expect(text).toBe('3\n');
      await Promise.all(writes);
    });

    it('says when its port or its folder is somebody else’s', async () => {
      const other = inFolder();
      const samePort = new ChdbEngine(other.folder, Number(new URL(engine.url).port));
      await expect(samePort.ensure()).rejects.toMatchObject({ code: 'NET.PORT_IN_USE' });
      await expect(new ChdbEngine(folder).ensure()).rejects.toMatchObject({ code: 'ANALYTICS.IN_USE' });
      other.remove();
    });

    it('comes back on the same address with what it had', async () => {
      const before = await sink.fingerprints();
      const address = engine.url;
      process.kill(engine.pid!, 'SIGKILL');
      await expect.poll(() => engine.running).toBe(false);
      await expect(sink.query('SELECT 1')).rejects.toMatchObject({ code: 'ANALYTICS.UNAVAILABLE' });
      await engine.ensure();
      expect(engine.url).toBe(address);
      expect(await sink.fingerprints()).toEqual(before);
    });
  });
}
