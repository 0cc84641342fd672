import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { argv, exit, stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';
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
  // Held to the end: the engine goes down with its last session.
  const held = open(folder);
  const { success } = await held.ping();
  if (!success) throw new AgonError('ANALYTICS.UNAVAILABLE', 'The engine does not answer.');
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
  const { code, message } = asAgonError(error);
  await say({ code, message });
  exit(1);
}
