/**
 * An agent of a few simple characters, for trying an arena out: it says on its standard output, a line of JSON each, what
 * it hears and does.
 */
import { readFileSync } from 'node:fs';
import { argv, exit, stdout } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Arena, ArenaError, type GameName, play } from './index.js';

const { values } = parseArgs({
  args: argv.slice(2),
  options: {
    arena: { type: 'string', default: '127.0.0.1:4602' },
    key: { type: 'string', default: '' },
    agent: { type: 'string', default: '' },
    game: { type: 'string', default: 'tic-tac-toe' },
    against: { type: 'string', default: 'house' },
    matches: { type: 'string', default: '1' },
    concurrency: { type: 'string', default: '1' },
    behaviour: { type: 'string', default: 'first' },
    'think-ms': { type: 'string', default: '0' },
    together: { type: 'string', default: '1' },
    ca: { type: 'string' },
    cert: { type: 'string' },
    'cert-key': { type: 'string' },
  },
});

const pem = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file));
const [ca, cert, certKey] = [values.ca, values.cert, values['cert-key']].map(pem);
const tls = ca && { ca, ...(cert && certKey ? { cert, key: certKey } : {}) };
const where = { arena: values.arena, key: values.key, tls };

const say = (event: string, data: object = {}) => void stdout.write(`${JSON.stringify({ event, ...data })}\n`);

/** Nobody moves before this many matches have started. */
let begin = () => {};
let started = 0;
const together = new Promise<void>((resolve) => {
  begin = resolve;
});

/** Legal[0]; or, once somebody has played, a cell that is taken. */
function choose(board: unknown, legal: readonly unknown[]): unknown {
  const taken = (board as readonly string[]).findIndex((cell) => cell !== '');
  return values.behaviour === 'illegal' && taken >= 0 ? taken : legal[0];
}

try {
  if (values.behaviour === 'ask') {
    say('account', { account: (await new Arena(where).whoAmI()).account });
    exit(0);
  }
  const game = values.game as GameName;
  await play({
    ...where,
    agent: values.agent,
    games: [game],
    queue: { against: values.against },
    matches: Number(values.matches),
    concurrency: Number(values.concurrency),
    act: async ({ board, legal }, { matchId, turn }) => {
      say('turn', { matchId, turn });
      await together;
      await sleep(values.behaviour === 'slow' ? 3_600_000 : Number(values['think-ms']));
      return choose(board, legal) as never;
    },
    onStarted: ({ matchId, seat, resumed }) => {
      say('started', { matchId, seat, resumed });
      started += 1;
      if (started >= Number(values.together)) begin();
    },
    onResult: ({ matchId, seat, score, reason, wallMs }) => say('result', { matchId, seat, score, reason, wallMs }),
    onRefused: ({ matchId, code }) => say('refused', { matchId, code }),
    onReconnect: (why) => say('reconnect', { code: why.code }),
  });
  exit(0);
} catch (error) {
  say('error', { code: error instanceof ArenaError ? error.code : 'INTERNAL', message: String(error) });
  exit(1);
}
