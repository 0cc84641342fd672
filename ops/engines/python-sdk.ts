import { spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';

/** The same place as in python-sdk.sh, which makes it. */
export const pythonWithSdk = join(
  env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'agon',
  'python-sdk-2',
  'bin',
  'python',
);

/** Why the specs of the SDK for Python cannot run here; undefined when they can. */
export const whyNoPythonSdk = (): string | undefined =>
  spawnSync(pythonWithSdk, ['-c', 'import grpc, google.protobuf, mypy, setuptools']).status === 0
    ? undefined
    : `${pythonWithSdk} is missing or not whole; ops/engines/python-sdk.sh makes it`;
