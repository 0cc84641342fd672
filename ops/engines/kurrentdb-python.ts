import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';

/** The same version and place as in kurrentdb-python.sh, which puts it there. */
const VERSION = '1.3.5';

/** A Python that has EventStoreDB's client. */
export const pythonWithClient = (): string =>
  join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'agon', `kurrentdbclient-${VERSION}`, 'bin', 'python');

/** Why the client for Python cannot be used here, if it cannot. */
export const whyNoPythonClient = (): string | undefined =>
  existsSync(pythonWithClient())
    ? undefined
    : `${pythonWithClient()} is missing; ops/engines/kurrentdb-python.sh puts it there`;
