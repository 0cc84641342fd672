import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { DataSource } from 'typeorm';
import { houseAccounts } from '../../sandbox-runner/index.js';
import type { Load } from '../../services/kernel/index.js';
import { definePart } from '../../services/runtime/part.js';
import type { Config } from '../../services/runtime/settings.js';
import { writeSide } from '../../services/runtime/write-side.js';
import { Directory } from './directory.js';
import { Identities, type IdentityPorts } from './identity.js';
import { Passwords } from './password.js';
import { type KeyRing, type SigningKey, Tokens } from './tokens.js';

interface IdentityParts extends Omit<IdentityPorts, 'tokens' | 'registration' | 'alone' | 'directory' | 'passwords'> {
  readonly config: Config;
  /** The file of the keys that tokens are signed with. */
  readonly signingKeys: string;
  readonly load: Load;
  readonly database: DataSource;
  issuer(): string;
}

/** Knows people by the log and by the vault. */
export const identities = definePart({
  name: 'identities',
  needs: { writeSide },
  start: async ({ writeSide: { execute, load } }, host) => {
    const { config, engines, clock, ids, onInternalError } = host;
    const [{ paths }, database, limits, vault] = await Promise.all([
      engines.folder(),
      engines.database(),
      engines.limits(),
      engines.vault(),
    ]);
    const value = identitiesOn({
      config,
      signingKeys: paths.signingKeys,
      load,
      database,
      vault,
      limits,
      clock,
      ids,
      execute,
      onInternalError,
      houseAccounts,
      issuer: () => host.publicUrl(),
    });
    return { value };
  },
});

export function identitiesOn({ config, signingKeys, load, database, issuer, ...rest }: IdentityParts): Identities {
  const { publicUrl, registration, oidcIssuer, oidcClientId: clientId, oidcClientSecret, corsOrigins } = config;
  const alone = aloneIn(database);
  const ring = ringIn(signingKeys, (work) => alone('signing keys', work));
  const ports: IdentityPorts = {
    ...rest,
    tokens: new Tokens({ ring, clock: rest.clock, issuer }),
    registration,
    alone,
    directory: new Directory(load),
    passwords: new Passwords(),
  };
  if (oidcIssuer === undefined || clientId === undefined) return new Identities(ports);
  const origins = [...corsOrigins, ...(publicUrl ? [new URL(publicUrl).origin] : [])];
  return new Identities(ports, { issuer: oidcIssuer, clientId, clientSecret: oidcClientSecret?.reveal(), origins });
}

/** Signing keys in a file that only the arena reads. */
function ringIn(path: string, alone: KeyRing['alone']): KeyRing {
  return {
    alone,
    load: async () => (existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as SigningKey[]) : []),
    save: async (keys) => {
      writeFileSync(`${path}.new`, JSON.stringify(keys), { mode: 0o600 });
      renameSync(`${path}.new`, path);
    },
  };
}

/**
 * One at a time under each name: in this process by a line, so that not everybody who waits takes a connection, and among
 * processes by a lock of the database, which takes it back from whoever dies.
 */
function aloneIn(database: DataSource): IdentityPorts['alone'] {
  const lines = new Map<string, Promise<unknown>>();
  return (name, work) => {
    const turn = (lines.get(name) ?? Promise.resolve()).then(() => locked(database, name, work));
    const over = turn
      .catch(() => {})
      .then(() => {
        if (lines.get(name) === over) lines.delete(name);
      });
    lines.set(name, over);
    return turn;
  };
}

async function locked<T>(database: DataSource, name: string, work: () => Promise<T>): Promise<T> {
  return database.transaction(async (held) => {
    await held.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [name]);
    return work();
  });
}
