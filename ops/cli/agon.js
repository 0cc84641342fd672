#!/usr/bin/env -S node --max-semi-space-size=32
// Short-lived objects get more room before the collector looks through them: the arena makes many, and keeps few.
import { existsSync } from 'node:fs';

const main = new URL('../../dist/ops/cli/main.js', import.meta.url);
if (!existsSync(main)) {
  process.stderr.write('agon is not built yet. Run: npm run build\n');
  process.exit(1);
}
await import(main.href);
