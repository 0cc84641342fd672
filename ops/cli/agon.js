#!/usr/bin/env -S node --max-semi-space-size=32
// Short-lived objects get more room before the collector looks through them: the arena makes many, and keeps few.
// What stands in this file is read by the oldest Node that anybody may have: it has no import and no await at its top.

const [major, minor] = process.versions.node.split('.').map(Number);
/** The first of each line that is tried; package.json and README say the same. Others since 22.12 may well do. */
const tried = { 20: 19, 22: 12, 24: 0, 26: 0 };
const tooOld = major < 20 || major === 21 || minor < tried[major];

if (tooOld) {
  process.stderr.write(
    'error NODE.TOO_OLD: Agon needs Node 20.19 or newer of its line, 22.12, or a later one, and this is Node ' +
      `${process.versions.node}. Get one at https://nodejs.org.\n`,
  );
  process.exitCode = 1;
} else {
  if (!(major in tried)) {
    process.stderr.write(
      `warning: Agon is tried on Node ${Object.keys(tried).join(', ')}, and this is Node ${process.versions.node}.\n`,
    );
  }
  run();
}

function run() {
  const main = new URL('../../dist/ops/cli/main.js', import.meta.url);
  import('node:fs').then(({ existsSync }) => {
    if (existsSync(main)) return import(main.href);
    process.stderr.write('agon is not built yet. Run: npm run build\n');
    process.exitCode = 1;
  });
}
