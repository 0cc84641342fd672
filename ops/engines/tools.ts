import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';

/** Where the scripts of this folder put what they get; names and versions are those of the scripts. */
export const cached = (...path: readonly string[]): string =>
  join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'agon', ...path);

/** Why something cannot be used that a script puts there; undefined when it can. */
export const whyMissing = (path: string, script: string): string | undefined =>
  existsSync(path) ? undefined : `${path} is missing; ops/engines/${script}`;

/** A Python that has EventStoreDB's client. */
export const pythonWithClient = (): string => cached('kurrentdbclient-1.3.5', 'bin', 'python');
export const whyNoPythonClient = () => whyMissing(pythonWithClient(), 'kurrentdb-python.sh puts it there');

/** The command of schemathesis, which sends a gateway what its OpenAPI document allows, and what it does not. */
export const schemathesis = (): string => cached('schemathesis-4.32.5', 'bin', 'st');
export const whyNoSchemathesis = () => whyMissing(schemathesis(), 'schemathesis.sh puts it there');

/** A Python that has what the SDK for it needs. */
export const pythonWithSdk = cached('python-sdk-2', 'bin', 'python');
export const whyNoPythonSdk = (): string | undefined =>
  spawnSync(pythonWithSdk, ['-c', 'import grpc, google.protobuf, mypy, setuptools']).status === 0
    ? undefined
    : `${pythonWithSdk} is missing or not whole; ops/engines/python-sdk.sh makes it`;
