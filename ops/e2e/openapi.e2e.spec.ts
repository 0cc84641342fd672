import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schemathesis, whyNoSchemathesis } from '../engines/tools.js';
import { type Served, serve, temporaryFolder } from './agon.contract.js';

const why = whyNoSchemathesis();
const SEED = 20_261_116;

describe.skipIf(why !== undefined)(`the gateway against its OpenAPI document${why ? ` (${why})` : ''}`, () => {
  const folder = temporaryFolder();
  let arena: Served;

  beforeAll(async () => {
    arena = await serve(join(folder.path, 'data'), '--stripe-sandbox', '0');
  });

  afterAll(async () => {
    await arena?.stop();
    folder.remove();
  });

  it('answers as the document says, whatever it is sent', async () => {
    const token = readFileSync(join(folder.path, 'data', 'operator.token'), 'utf8');
    const { code, output } = await st(
      'run',
      `${arena.url}/v1/openapi.json`,
      '--header',
      `Authorization: Bearer ${token}`,
      '--seed',
      `${SEED}`,
      '--max-examples',
      '12',
      '--request-timeout',
      '20',
      '--no-color',
      // A cursor may look right and be of another query: that it is refused is no fault.
      '--checks',
      'all',
      '--exclude-checks',
      'positive_data_acceptance',
      // The log has no end, and so has an answer that follows it.
      '--exclude-path',
      '/v1/events',
      // It would call addresses that schemathesis made up, and some of them may be somebody's.
      '--exclude-operation-id',
      'testWebhook',
    );
    expect(code, `seed ${SEED}\n${output}`).toBe(0);
    expect(output).toMatch(/[1-9]\d\d generated/);
  });

  const st = (...args: string[]) =>
    new Promise<{ code: number | null; output: string }>((resolve) => {
      const { PATH, HOME } = process.env;
      const child = spawn(schemathesis(), args, { cwd: folder.path, env: { PATH, HOME, PYTHONUTF8: '1' } });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (piece) => {
          output += piece;
        });
      }
      child.once('close', (code) => resolve({ code, output }));
    });
});
