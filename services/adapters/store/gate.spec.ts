import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { chain } from '../../kernel/fixtures.js';
import { NO_STREAM, type RecordedEvent } from '../../kernel/index.js';
import { compiled } from '../../runtime/package.js';
import { gatePath } from './gate.js';
import { LmdbEventStore } from './lmdb.js';

const root = mkdtempSync(join(tmpdir(), 'agon-gate-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const moduleOf = (name: string) => JSON.stringify(pathToFileURL(compiled(import.meta.url, name)).href);
/** Runs a program in another process; `folder` is its argument. */
const program = (source: string, folder: string): [string, string[]] => [
  process.execPath,
  ['--input-type=module', '-e', source, folder],
];

describe('the gate of a log', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(root, 'log-'));
  });

  const write = async (store: LmdbEventStore, stream: string) => {
    await store.append(stream, NO_STREAM, chain(stream, 1));
  };
  const all = async (store: LmdbEventStore) => {
    const events: RecordedEvent[] = [];
    for (;;) {
      const page = await store.readAll({ after: events.length });
      if (page.length === 0) return events;
      events.push(...page);
    }
  };

  it('no event is lost while others open the log again and again', async () => {
    const store = await LmdbEventStore.open(folder);
    await write(store, 'note-first');
    const openers = [0, 1].map(() => {
      const source = `
        import { openLog } from ${moduleOf('./environments.js')};
        import { Gate } from ${moduleOf('./gate.js')};
        const [, folder] = process.argv;
        const gate = Gate.of(folder);
        for (let i = 0; i < 3000; i++) await gate.opening(() => openLog(folder, true)).close();`;
      return promisify(execFile)(...program(source, folder));
    });
    let opening = true;
    const opened = Promise.all(openers).finally(() => {
      opening = false;
    });
    const streams = ['note-first'];
    for (let i = 0; opening; i++) {
      streams.push(`note-${i}`);
      await write(store, `note-${i}`);
    }
    await opened;
    await store.close();
    const again = await LmdbEventStore.open(folder);
    expect((await all(again)).map(({ stream }) => stream)).toEqual(streams);
    for (const stream of streams) expect(await again.readStream(stream)).toHaveLength(1);
    await again.close();
  });

  it('nothing is committed while another process is in it', async () => {
    const store = await LmdbEventStore.open(folder);
    await write(store, 'note-first');
    const source = `
      import { openLog } from ${moduleOf('./environments.js')};
      import { Gate } from ${moduleOf('./gate.js')};
      const [, folder] = process.argv;
      const log = Gate.of(folder).opening(() => {
        const log = openLog(folder, true);
        const committed = () => log.getStats().lastTxnId;
        const [before, since] = [committed(), performance.now()];
        while (committed() === before && performance.now() - since < 1000);
        console.log(committed() - before);
        return log;
      });
      await log.close();`;
    let inside = true;
    const child = promisify(execFile)(...program(source, folder)).finally(() => {
      inside = false;
    });
    for (let i = 0; inside; i++) await write(store, `note-${i}`);
    expect((await child).stdout.trim()).toBe('0');
    await store.close();
  });

  it('who dies in it does not keep the writer out', async () => {
    const store = await LmdbEventStore.open(folder);
    await write(store, 'note-a');
    const source = `
      import { Gate } from ${moduleOf('./gate.js')};
      Gate.of(process.argv[1]).opening(() => process.kill(process.pid, 'SIGKILL'));`;
    const child = spawn(...program(source, folder), { stdio: 'ignore' });
    expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
    await write(store, 'note-b');
    expect(await all(store)).toHaveLength(2);
    await store.close();
  });

  it('stays empty, and is made anew when it is damaged', async () => {
    const harm = [
      () => truncateSync(gatePath(folder), 100),
      () => writeFileSync(gatePath(folder), Buffer.alloc(8192, 7)),
    ];
    for (const [i, damage] of harm.entries()) {
      const store = await LmdbEventStore.open(folder);
      await write(store, `note-${i}`);
      await store.close();
      damage();
    }
    const store = await LmdbEventStore.open(folder);
    expect(await all(store)).toHaveLength(2);
    expect(statSync(gatePath(folder)).size).toBe(8192);
    await store.close();
  });
});
