/** Many agents in one process, each on a connection of its own: node players.js <arena> <key> <agents> <think ms>. */
import { setMaxListeners } from 'node:events';
import { argv, stdin } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { play } from '../../sdk/typescript/index.js';

const [arena = '', key = '', agents = '1', thinkMs = '0'] = argv.slice(2);
const stopping = new AbortController();
// One for every agent.
setMaxListeners(0, stopping.signal);
stdin.once('end', () => stopping.abort()).resume();
await Promise.all(
  Array.from({ length: Number(agents) }, (_, i) =>
    play({
      arena,
      key,
      agent: `ada.bot-${i}`,
      games: ['tic-tac-toe'],
      register: false,
      signal: stopping.signal,
      act: async ({ legal }) => {
        // Somewhere between nothing and twice as long, as people and models do.
        await sleep(Math.random() * 2 * Number(thinkMs));
        return legal[Math.floor(Math.random() * legal.length)] ?? 0;
      },
    }),
  ),
);
