import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@clickhouse/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chdbInstalled } from '../../projections/analytics/installed.contract.js';
import { run, type Served, serve, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
const data = join(folder.path, 'arena');

interface Asked {
  readonly rows: readonly Record<string, string>[];
}

const ask = async (sql: string): Promise<Asked> => {
  const { stdout, stderr } = await run('analytics', 'query', sql, '--data', data, '--json');
  expect(stderr).toBe('');
  return JSON.parse(stdout) as Asked;
};

if (!chdbInstalled) {
  it.skipIf(true)('analytics of an arena need the optional package chdb, which is not installed', () => {});
} else {
  describe('analytics of an arena', () => {
    let arena: Served;
    beforeAll(async () => {
      arena = await serve(data, '--analytics', '--analytics-port', '0');
    });
    afterAll(async () => {
      await arena?.stop('SIGKILL');
      folder.remove();
    });

    const parts = async () => {
      const response = await fetch(`${arena.url}/readyz`);
      const { parts: all } = (await response.json()) as { parts: { part: string; ready: boolean; detail: string }[] };
      return { status: response.status, analytics: all.find(({ part }) => part === 'analytics') };
    };
    const caughtUp = () =>
      expect
        .poll(async () => (await parts()).analytics?.detail, { timeout: 60_000, interval: 200 })
        .toBe('0 events behind');

    it('are there once it runs, for its dashboard and for any client of ClickHouse', async () => {
      await caughtUp();
      const { data: found, errors } = await arena.graphql<{ analytics: Record<string, Record<string, unknown>[]> }>(
        `{ analytics { matchesPerDay { game settled voided } agentPerformance { agentId played won netCents }
           turnPercentiles { turns fuelP50 fuelP99 wallMsP99 } matchLatency { game matches waitMsP50 playMsP99 }
           resourceUse { driver seats fuel cpuMs peakMemoryBytes } revenue { currency potCents rakeCents paidCents }
           promptProofs { proofs } submissionFunnel { submitted matched played won } } }`,
      );
      expect(errors).toBeUndefined();
      const { matchesPerDay, submissionFunnel, resourceUse, promptProofs, revenue } = found.analytics;
      expect(matchesPerDay?.reduce((sum, row) => sum + Number(row.settled), 0)).toBe(120);
      // The first ladder plays two of the games, so not every house agent comes up.
      expect(submissionFunnel).toMatchObject({ submitted: 10, matched: 6, played: 6 });
      expect(resourceUse?.[0]).toMatchObject({ seats: 240 });
      expect(promptProofs).toEqual([]);
      const [{ potCents, rakeCents, paidCents } = {}] = revenue ?? [];
      expect(BigInt(`${potCents}`)).toBe(BigInt(`${rakeCents}`) + BigInt(`${paidCents}`));
      const client = createClient({ url: `${arena.clickhouse}` });
      const result = await client.query({ query: 'SELECT count() AS n FROM events FINAL', format: 'JSONEachRow' });
      expect(await result.json()).toEqual([{ n: arena.events }]);
      await expect(client.command({ query: 'DROP TABLE events' })).rejects.toMatchObject({ code: '164' });
      await client.close();
    });

    it('are asked from the command line, which says what it cannot answer', async () => {
      const { rows } = await ask("SELECT count() AS n FROM events FINAL WHERE type = 'MatchSettled'");
      expect(rows).toEqual([{ n: '120' }]);
      const csv = await run('analytics', 'query', 'SELECT 1 AS a, 2 AS b', '--data', data, '--csv');
      expect(csv.stdout).toBe('"a","b"\n1,2\n');
      const table = await run('analytics', 'query', 'SELECT 1 AS a', '--data', data);
      expect(table).toMatchObject({ code: 0, stdout: 'a\n1\n\n1 row\n' });
      for (const [sql, word] of [
        ['SELECT * FROM nowhere', 'SHOW TABLES'],
        ['DROP TABLE events', 'this command reads'],
        ['SELEKT 1', 'Syntax error'],
        ['SELECT number FROM numbers(20000)', '--limit'],
      ] as const) {
        const refused = await run('analytics', 'query', sql, '--data', data);
        expect(refused.code).toBe(1);
        expect(refused.stderr).toContain('ANALYTICS.REFUSED');
        expect(refused.stderr).toContain(word);
      }
    });

    it('come back when their engine is killed, while the arena goes on', async () => {
      const { rows } = await ask('SELECT count() AS n FROM events FINAL');
      const { pid } = JSON.parse(readFileSync(join(data, 'analytics.json'), 'utf8')) as { pid: number };
      process.kill(pid, 'SIGKILL');
      expect((await parts()).status).toBe(200);
      await expect.poll(async () => (await parts()).analytics?.ready, { timeout: 60_000 }).toBe(true);
      await caughtUp();
      expect((await ask('SELECT count() AS n FROM events FINAL')).rows).toEqual(rows);
    });

    it('are rebuilt beside the running arena, and from a stopped one', async () => {
      const hash = 'SELECT sum(sipHash64(*)) AS hash, count() AS n FROM agent_results FINAL';
      const before = await ask(hash);
      const running = await run('analytics', 'rebuild', '--data', data, '--json');
      expect(JSON.parse(running.stdout)).toMatchObject({ events: arena.events, swapped: true });
      expect(await ask(hash)).toEqual(before);
      await arena.stop('SIGTERM');
      expect(existsSync(join(data, 'analytics.json'))).toBe(false);
      expect(await ask(hash)).toEqual(before);
      const stopped = await run('analytics', 'rebuild', '--data', data, '--json');
      expect(JSON.parse(stopped.stdout)).toMatchObject({ swapped: false });
      expect(await ask(hash)).toEqual(before);
    });
  });
}
