import { type AgonError, asAgonError } from '../../services/kernel/index.js';
import { behindIn, type Host } from '../../services/runtime/host.js';
import { definePart } from '../../services/runtime/part.js';
import { ClickHouseSink, clickHouseAt } from '../sinks/clickhouse.js';
import { feed } from './feed.js';

const GROUP = 'analytics';

/** Takes every event into ClickHouse, on its own: whatever becomes of it, nothing waits for it. */
export const analytics = definePart({
  name: GROUP,
  needs: {},
  start: async (_needs, host) => {
    const server = await host.engines.clickhouse();
    if (!server) return { value: undefined, optional: true, ready: async () => 'switched off' };
    let sink: ClickHouseSink | undefined;
    let trouble: AgonError | undefined;
    const failed = (error: unknown) => {
      trouble = asAgonError(error);
      host.onRetry(GROUP, error);
    };
    const connect = async () => {
      const next = await server.open(async (url) => {
        const opened = new ClickHouseSink(clickHouseAt(url));
        await opened.migrate(host.config.analyticsDays);
        return opened;
      });
      await sink?.close();
      sink = next;
      trouble = undefined;
      return next;
    };
    const onProgress = () => {
      trouble = undefined;
    };
    const log = await host.engines.log();
    const following = feed({ log, connect, alive: () => server.running(), onRetry: failed, onProgress });
    following.done.catch(failed);
    addLag(host, following.position);
    const ready = async () => {
      const behind = behindIn(host.config, (await log.lastPosition()) - following.position());
      if (trouble) throw new Error(`${behind}; ${trouble.code}: ${trouble.message}`);
      if (!sink) throw new Error('starting');
      return behind;
    };
    const stop = async () => {
      // The server first, where it is our own: an insert that is under way would take its time, and is sent again after
      // the next start.
      await server.close();
      await following.stop();
      await sink?.close();
    };
    return { value: undefined, optional: true, ready, stop };
  },
});

function addLag({ consumers }: Host, position: () => number): void {
  consumers.set(GROUP, { stop: async () => {}, done: new Promise(() => {}), position });
}
