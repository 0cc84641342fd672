import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { argv, stderr, stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';
import { check, isOwn } from '../../gateway/eventstore/endpoint.js';
import { serveEventStore } from '../../gateway/eventstore/server.js';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { randomIds, systemClock } from '../../services/kernel/index.js';

// Started by the cluster benchmark: every line on stdin asks for an empty log behind a door; the answer is its port.
const [folder = ''] = argv.slice(2);
let close = async () => {};

for await (const _line of createInterface({ input: stdin })) {
  await close();
  const store = await LmdbEventStore.open(mkdtempSync(join(folder, 'log-')));
  const anybody = { actor: { id: 'bench', role: 'operator' }, write: true } as const;
  const onInternalError = (error: unknown) => void stderr.write(`${String(error)}\n`);
  const ports = { store, clock: systemClock, ids: randomIds, isOwn, check, accessOf: () => anybody, onInternalError };
  const door = await serveEventStore(ports, { host: '127.0.0.1', port: 0 });
  close = async () => {
    await door.close();
    await store.close();
  };
  stdout.write(`${door.address.split(':')[1]}\n`);
}
await close();
