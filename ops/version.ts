import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../services/adapters/compiled.js';

export { packageRoot };

/** The version in package.json. */
export const version: string = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')).version;
