import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { argv, exit, stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';
import type { ClickHouseClient } from '@clickhouse/client';
import { openChdb } from '../../projections/sinks/chdb.js';
import { AgonError, asAgonError } from '../../services/kernel/index.js';
import { chdbServer } from './chdb-http.js';

// Run by startChdb(). Owns the engine and its folder, serves it on loopback, and ends when whoever started it does: its
// standard input closes then, however that one ended. Says one line: where it answers, or why it does not.
const [folder = '', port = '0'] = argv.slice(2);
const say = (line: object) => new Promise((resolve) => stdout.write(`${JSON.stringify(line)}\n`, resolve));

try {
  const lines = createInterface(stdin);
  const [secret] = (await once(lines, 'line')) as [string];
  const open = await openChdb();
  const held = await hold(() => open(folder));
  const server = chdbServer({ open: () => open(folder), secret });
  const end = () => {
    server.closeAllConnections();
    void held.close().finally(() => exit(0));
  };
  lines.once('close', end);
  process.once('SIGTERM', end).on('SIGINT', () => {});
  server.listen(Number(port), '127.0.0.1');
  await once(server, 'listening');
  await say({ port: (server.address() as AddressInfo).port });
} catch (error) {
  const { code, message } = portTaken(error) ?? asAgonError(error);
  await say({ code, message });
  exit(1);
}

/** Held to the end: the engine goes down with its last session. */
async function hold(openFolder: () => ClickHouseClient): Promise<ClickHouseClient> {
  try {
    const held = openFolder();
    const { success } = await held.ping();
    if (success) return held;
  } catch {
    // What the engine says here names no reason; a folder that is in use is the usual one.
  }
  throw new AgonError(
    'ANALYTICS.IN_USE',
    `The analytics in ${folder} cannot be opened: another process has them, or they are damaged. Try again in a moment; ` +
      'they are derived, and "agon analytics rebuild" makes them anew.',
  );
}

function portTaken(error: unknown): AgonError | undefined {
  if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') return undefined;
  return new AgonError(
    'NET.PORT_IN_USE',
    `Port ${port} is in use. Choose another with --analytics-port, or 0 for any.`,
  );
}
