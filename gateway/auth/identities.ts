import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { DataSource } from 'typeorm';
import { FileVault } from '../../services/adapters/vault/file.js';
import type { Load } from '../../services/kernel/index.js';
import type { folderLayout } from '../../services/runtime/data-folder.js';
import type { Config } from '../../services/runtime/settings.js';
import { Directory } from './directory.js';
import { Identities, type IdentityPorts } from './identity.js';
import { Passwords } from './password.js';
import { type KeyRing, type SigningKey, Tokens } from './tokens.js';

interface IdentityParts
  extends Pick<IdentityPorts, 'limits' | 'clock' | 'ids' | 'houseAccounts' | 'execute' | 'onInternalError'> {
  readonly config: Config;
  readonly paths: ReturnType<typeof folderLayout>;
  readonly load: Load;
  readonly database: DataSource;
  /** Where the gateway answers, as long as nothing better was said. */
  url(): string;
}

/** Knows people by the log and by the vault in the data folder. */
export function identitiesFrom({ config, paths, load, database, url, ...rest }: IdentityParts): Identities {
  const { publicUrl, registration, oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret, corsOrigins } = config;
  const alone = aloneIn(database);
  const ring = ringIn(paths.signingKeys, (work) => alone('signing keys', work));
  const tokens = new Tokens({ ring, clock: rest.clock, issuer: () => publicUrl ?? url() });
  const ports: IdentityPorts = {
    ...rest,
    tokens,
    registration,
    alone,
    vault: new FileVault({ people: paths.people, keys: paths.peopleKeys }),
    directory: new Directory(load),
    passwords: new Passwords(),
  };
  if (issuer === undefined || clientId === undefined) return new Identities(ports);
  const origins = [...corsOrigins, ...(publicUrl ? [new URL(publicUrl).origin] : [])];
  return new Identities(ports, { issuer, clientId, clientSecret: oidcClientSecret?.reveal(), origins });
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
