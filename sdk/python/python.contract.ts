import { spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { packageRoot } from '../../ops/version.js';

export const sdkFolder = join(packageRoot, 'sdk', 'python');
export const pythonWithSdk = join(
  env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'agon',
  'python-sdk-2',
  'bin',
  'python',
);
export const pythonPath = { PYTHONPATH: sdkFolder, PYTHONDONTWRITEBYTECODE: '1' };

/** Why the specs of the SDK for Python cannot run here; undefined when they can. */
export const whyNoPython =
  spawnSync(pythonWithSdk, ['-c', 'import grpc, google.protobuf, mypy, setuptools']).status === 0
    ? undefined
    : 'run ops/engines/python-sdk.sh first';
