import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { serveWith, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
afterAll(() => folder.remove());

describe('the log of a running arena', () => {
  it('has a line of JSON for each request and command, with who and why, and without secrets', async () => {
    const env = { AGON_LOG_LEVEL: 'debug' };
    const arena = await serveWith(env, folder.path, '--no-ladder');
    let stderr = '';
    arena.child.stderr?.on('data', (chunk) => {
      stderr += chunk;
    });
    const token = readFileSync(join(folder.path, 'operator.token'), 'utf8');
    const forged = 'x\n{"level":"fatal","msg":"forged"}\u001b[31m';
    const headers = { authorization: `Bearer ${token}`, 'user-agent': 'curl \u009b31m', 'idempotency-key': 'k' };
    const query = 'mutation ($name: String!) { registerOwner(accountId: "ada", displayName: $name) { id } }';
    const refused = await arena.graphql(query, { name: forged }, headers);
    expect(refused.errors).toHaveLength(1);
    await arena.graphql(query, { name: 'Ada' }, headers);
    await fetch(`${arena.url}/v1/matches/none%0aforged/live?token=hunter2`);
    expect(await arena.stop()).toBe(0);

    const lines = stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, string>);
    expect(lines.every(({ level, time, msg }) => Boolean(level && time && msg))).toBe(true);
    const request = lines.find(({ operation, outcome }) => operation === 'mutation registerOwner' && outcome === 'ok');
    expect(request).toMatchObject({ level: 'info', door: 'graphql', actorId: 'operator' });
    const command = lines.find(({ type }) => type === 'RegisterOwner');
    expect(command).toMatchObject({ msg: 'command', outcome: 'appended', actorId: 'operator' });
    expect(command?.correlationId).toBe(request?.requestId);
    expect(lines.filter(({ operation }) => operation === 'GET /v1/matches/:matchId/live')).toHaveLength(1);
    for (const text of ['forged', 'hunter2', '\u001b', '\u009b']) expect(stderr).not.toContain(text);
    expect(stderr).not.toContain(token.trim());
  });
});
