import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { argv, exit, stderr, stdout } from 'node:process';
import { contexts } from '../../services/index.js';
import { asAgonError, checkedData, derivedId, GENESIS_HASH, seal } from '../../services/kernel/index.js';
import { packageRoot } from '../../services/runtime/package.js';

const USAGE = `Usage: npm run golden -- <context> <EventType> '<data as JSON>'

Writes services/<context>/golden/<EventType>.v<version>.json: the event as it is stored, sealed with its hash.
A golden file is written once and never edited; a new version of an event gets a file of its own.
`;

/** Seals an example of an event, so that nobody has to compute a hash by hand. */
function write([name = '', type = '', json = '']: readonly string[]): string {
  const context = contexts.find((each) => each.name === name);
  if (!context || json === '') throw new Error(USAGE);
  const { version, data } = checkedData(context.events, { type, data: JSON.parse(json) });
  const file = join(packageRoot, 'services', name, 'golden', `${type}.v${version}.json`);
  if (existsSync(file)) throw new Error(`${relative(packageRoot, file)} exists, and golden files are never changed.`);
  const commandId = derivedId('golden', type, version);
  const event = seal({
    id: derivedId(commandId, 0),
    type,
    version,
    stream: `${name}-golden`,
    revision: 0,
    time: '2026-01-01T00:00:00.000Z',
    data,
    meta: {
      commandId,
      inputHash: GENESIS_HASH,
      correlationId: commandId,
      causationId: commandId,
      actor: { id: 'golden', role: 'system' },
    },
    prevHash: GENESIS_HASH,
  });
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(event, null, 2)}\n`);
  return relative(packageRoot, file);
}

try {
  stdout.write(`${write(argv.slice(2))}\n`);
} catch (error) {
  stderr.write(`${asAgonError(error).message}\n`);
  exit(2);
}
