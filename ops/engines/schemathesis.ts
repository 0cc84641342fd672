import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';

/** The same version and place as in schemathesis.sh, which puts it there. */
const VERSION = '4.32.5';

/** The command of schemathesis, which sends a gateway what its OpenAPI document allows, and what it does not. */
export const schemathesis = (): string =>
  join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'agon', `schemathesis-${VERSION}`, 'bin', 'st');

/** Why schemathesis cannot be used here, if it cannot. */
export const whyNoSchemathesis = (): string | undefined =>
  existsSync(schemathesis()) ? undefined : `${schemathesis()} is missing; ops/engines/schemathesis.sh puts it there`;
