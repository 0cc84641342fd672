import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { argv, exit, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { contexts } from '../../services/index.js';
import { packageRoot } from '../../services/runtime/package.js';

const FOLDER = join(packageRoot, 'proto', 'events');

/** The JSON Schema of every event's newest version, by its path below proto/events. */
function generate(): Map<string, string> {
  const files = new Map<string, string>();
  for (const { name, events } of contexts) {
    for (const [type, { version, schema }] of Object.entries(events.specs)) {
      const title = `${type} v${version}`;
      const text = JSON.stringify({ title, ...z.toJSONSchema(schema, { io: 'output' }) }, null, 2);
      files.set(join(name, `${type}.v${version}.json`), `${text}\n`);
    }
  }
  return files;
}

/** What differs between the schemas on disk and the code. Schemas of older versions stay and are not looked at. */
export function schemaDrift(): string[] {
  const problems: string[] = [];
  for (const [path, text] of generate()) {
    const file = join(FOLDER, path);
    const where = relative(packageRoot, file);
    if (!existsSync(file)) problems.push(`${where} is missing. Run: npm run schemas`);
    else if (readFileSync(file, 'utf8') !== text) {
      problems.push(`${where} differs from the code. An event that was written keeps its schema: raise the version.`);
    }
  }
  return problems;
}

function write(): void {
  for (const [path, text] of generate()) {
    const file = join(FOLDER, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  for (const context of readdirSync(FOLDER)) {
    if (!contexts.some(({ name }) => name === context)) rmSync(join(FOLDER, context), { recursive: true });
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  if (argv.includes('--write')) write();
  const problems = schemaDrift();
  for (const problem of problems) stdout.write(`${problem}\n`);
  exit(problems.length > 0 ? 1 : 0);
}
