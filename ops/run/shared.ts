import { openDatabase, openReads } from '../../projections/sinks/database.js';
import { FileArtifacts } from '../../services/adapters/artifacts.js';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { FileVault } from '../../services/adapters/vault/file.js';
import type { EventStore } from '../../services/kernel/index.js';
import type { DataFolder } from '../../services/runtime/data-folder.js';
import type { MakeBus } from '../../services/runtime/engines.js';
import type { Host } from '../../services/runtime/host.js';
import { openLog } from './log.js';

/** The engines that are the same in one process and in a cluster, once it is known where the folder and the database are. */
export abstract class SharedEngines {
  constructor(protected readonly host: Host) {}

  abstract folder(): Promise<DataFolder>;
  abstract log(): Promise<EventStore>;
  protected abstract databaseUrl(): Promise<string>;

  database() {
    const { databasePool: pool } = this.host.config;
    return this.host.engine('database', async () => {
      const database = await openDatabase(await this.databaseUrl(), { pool });
      const ready = async () => {
        const [{ version }] = await database.query('SELECT version()');
        return `${version}`.split(' ').slice(0, 2).join(' ');
      };
      return { value: database, ready, stop: () => database.destroy() };
    });
  }

  reads() {
    const { databasePool: pool } = this.host.config;
    return this.host.engine('reads', async () => {
      await this.database();
      const reads = await openReads(await this.databaseUrl(), { pool });
      return { value: reads, stop: () => reads.destroy() };
    });
  }

  async tail(): Promise<MakeBus> {
    const store = await this.log();
    return (checkpoints) => new EmbeddedBus(store, checkpoints, this.host.onRetry);
  }

  async artifacts() {
    return new FileArtifacts((await this.folder()).paths.artifacts);
  }

  async vault() {
    const { people, peopleKeys } = (await this.folder()).paths;
    return new FileVault({ people, keys: peopleKeys });
  }

  /** The log that the configuration names, as something that runs. */
  protected async openLog() {
    const store = await openLog(this.host.config);
    const ready = async () => `at position ${await store.lastPosition()}`;
    return { value: store, ready, stop: () => store.close() };
  }
}
