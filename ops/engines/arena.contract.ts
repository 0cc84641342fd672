import { parseConfig } from '../../services/runtime/settings.js';
import { type Arena, type ArenaOptions, startArena } from '../run/arena.js';
import { ownDatabase } from './shared.contract.js';

export type { Arena };

interface Choice extends ArenaOptions {
  readonly env?: Record<string, string>;
}

/** An arena of a spec file's own, in this process, quiet, on the PostgreSQL of this run. */
export async function arenaOfSpec(flags: Record<string, unknown>, { env, ...options }: Choice = {}): Promise<Arena> {
  const database = await ownDatabase();
  const quiet = { port: 0, cells: 1, logLevel: 'silent', analytics: false, databaseUrl: database.url };
  try {
    const arena = await startArena(parseConfig({ ...quiet, ...flags }, env), options);
    const stop = async () => {
      await arena.stop();
      await database.drop();
    };
    return { ...arena, stop };
  } catch (error) {
    await database.drop();
    throw error;
  }
}
