import { existsSync, writeSync } from 'node:fs';
import { argv, exit } from 'node:process';
import { asAgonError } from '../../kernel/errors.js';
import { corrupt, decodeBlock } from './block.js';
import { indexPath, openIndex, openLog, rehearseWrite } from './environments.js';
import { Gate } from './gate.js';
import { asStoreError } from './store-error.js';
import { markOf, StreamIndex } from './stream-index.js';

// Run by probe(). Reads all there is and says, a line each, that the log is whole and that the index is; what is wrong
// with the log it says as JSON. It speaks at once, because the next thing it reads may be its end.
const [folder = '', mode] = argv.slice(2);
const say = (line: string) => writeSync(1, `${line}\n`);

const gate = Gate.of(folder);
const marks: number[] = [];
try {
  const log = gate.opening(() => openLog(folder, true));
  for (const { key, value } of log.getRange({})) {
    if (key !== marks.length + 1) throw corrupt(marks.length + 1, 'is missing');
    for (const event of decodeBlock(value, key)) marks.push(markOf(event));
  }
  await log.close();
  if (mode === 'write')
    await rehearseWrite(
      gate.opening(() => openLog(folder, false)),
      marks.length + 1,
    );
} catch (error) {
  const { code, message, details } = asStoreError(asAgonError(error).cause ?? error);
  say(JSON.stringify({ code, message, details }));
  exit(1);
}
say('log');

if (existsSync(indexPath(folder))) {
  const index = gate.opening(() => openIndex(folder, true));
  if (!new StreamIndex(folder, index, gate, true).agreesWith(marks)) exit(0);
  await index.close();
  if (mode === 'write')
    await rehearseWrite(
      gate.opening(() => openIndex(folder, false)),
      ['rehearsal', 0],
    );
}
say('index');
