import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../services/adapters/compiled.js';

export { packageRoot };

/**
 * What Node is started with for anything of ours that writes or projects: short-lived objects get more room before the
 * collector looks through them. package.json, the first line of agon.js and the Dockerfile say the same.
 */
export const nodeFlags = ['--max-semi-space-size=32'] as const;

/** The version in package.json. */
export const version: string = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')).version;
