import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kill } from 'node:process';
import { afterAll, describe, expect, it } from 'vitest';
import { startAnvil, whyNoAnvil } from './anvil.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-anvil-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const missing = whyNoAnvil();

async function call(url: string, method: string, ...params: unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return ((await response.json()) as { result: unknown }).result;
}

describe.skipIf(missing !== undefined)(`a chain to try things on${missing ? ` (${missing})` : ''}`, () => {
  it('goes on where it was when it is started again, and ends when it is told to', async () => {
    const first = await startAnvil({ folder });
    expect(await call(first.url, 'eth_chainId')).toBe('0x7a69');
    await call(first.url, 'anvil_mine', '0x3');
    await first.stop();
    expect(() => kill(first.pid, 0)).toThrow(/ESRCH/);
    const again = await startAnvil({ folder });
    expect(await call(again.url, 'eth_blockNumber')).toBe('0x3');
    await again.stop();
  }, 120_000);
});
