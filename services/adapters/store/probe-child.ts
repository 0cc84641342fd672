import { argv, exit, stdout } from 'node:process';
import { asAgonError } from '../../kernel/index.js';
import { corrupt, decodeBlock } from './block.js';
import { openLog } from './lmdb.js';
import { asStoreError } from './store-error.js';

// Run by probe(): reads all there is, prints what is wrong as JSON, and says by its exit code whether anything is.
try {
  let expected = 1;
  for (const { key, value } of openLog(argv[2] ?? '', true).getRange({})) {
    if (key !== expected) throw corrupt(expected, 'is missing');
    expected += decodeBlock(value, key).length;
  }
} catch (error) {
  const { code, message, details } = asStoreError(asAgonError(error).cause ?? error);
  stdout.write(JSON.stringify({ code, message, details }), () => exit(1));
}
