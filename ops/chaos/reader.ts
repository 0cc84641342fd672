import { stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';
import { LmdbEventStore } from '../../services/adapters/store/lmdb.js';
import { createHandle, newMeta, SYSTEM } from '../../services/kernel/index.js';
import { GrantCredits, wallet } from '../../services/wallet/index.js';
import { digestOf, indexEqualsLog, readLog } from './checks.js';
import type { Answer } from './protocol.js';

// Started by the chaos run: opens every folder it is told, as the arena would, and says what it found.
const GRANTS = 40;

for await (const folder of createInterface({ input: stdin })) {
  stdout.write(`${JSON.stringify(await read(folder))}\n`);
}

async function read(folder: string): Promise<Answer> {
  let store: LmdbEventStore | undefined;
  try {
    store = await LmdbEventStore.open(folder);
    const log = await readLog(store);
    const digest = digestOf(log);
    const [what] = await indexEqualsLog({ store, log });
    if (what) return { outcome: 'inconsistent', what };
    // Damage that nobody has noticed must not come out later: write on, and read it all again.
    await writeOn(store);
    const more = await readLog(store);
    const [later] = await indexEqualsLog({ store, log: more });
    if (later) return { outcome: 'inconsistent', what: `After more appends: ${later}` };
    if (digestOf(more.slice(0, log.length)) !== digest || more.length !== log.length + GRANTS) {
      return { outcome: 'inconsistent', what: 'More appends changed what was there.' };
    }
    return { outcome: 'served', digest, events: log.length };
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown };
    if (typeof code === 'string') return { outcome: 'reported', code, message: String(message) };
    return { outcome: 'inconsistent', what: `An error without a code: ${String(error)}` };
  } finally {
    await store?.close().catch(() => {});
  }
}

async function writeOn(store: LmdbEventStore): Promise<void> {
  const handle = createHandle({ store });
  for (let i = 0; i < GRANTS; i++) {
    const data = { accountId: `player-${i}`, amountCents: '100', currency: 'PLAY', reason: 'After the damage' };
    await handle(wallet, new GrantCredits(data, newMeta(SYSTEM)));
  }
}
