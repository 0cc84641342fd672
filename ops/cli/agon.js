#!/usr/bin/env node
import { existsSync } from 'node:fs';

const main = new URL('../../dist/ops/cli/main.js', import.meta.url);
if (!existsSync(main)) {
  process.stderr.write('agon is not built yet. Run: npm run build\n');
  process.exit(1);
}
await import(main.href);
