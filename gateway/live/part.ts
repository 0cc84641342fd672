import type { Progress } from '../../proto/gen/agon/runner/v1/runner.js';
import { upcast } from '../../services/index.js';
import { definePart } from '../../services/runtime/part.js';
import { LiveMatches } from './matches.js';

const TOPIC = 'live';

/** Matches as they are played, told to whoever watches, in whatever process. */
export const live = definePart({
  name: 'live matches',
  needs: {},
  start: async (_needs, host) => {
    const channel = await host.engines.channel();
    return { value: new LiveMatches((progress) => channel.publish(TOPIC, progress)) };
  },
});

/** The same for those who have spectators: what is told is heard, and what ended is followed in the log. */
export const spectators = definePart({
  name: 'spectators',
  needs: { live },
  start: async ({ live: value }, host) => {
    const { engines, metrics } = host;
    await (await engines.channel()).subscribe(TOPIC, (message) => value.hear(message as Progress));
    const following = await value.follow(await engines.log(), upcast);
    following.done.catch((error: unknown) => host.giveUp(error, 'spectators'));
    metrics.gauge('agon_spectators', 'Those who watch a match now.', () => value.spectators);
    return { value, stop: () => following.stop() };
  },
});
