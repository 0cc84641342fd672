import { join } from 'node:path';
import { env, execPath } from 'node:process';
import { fastify } from 'fastify';
import { nodeFlags, packageRoot } from '../../services/runtime/package.js';
import { withFolder } from '../harness/folders.js';
import { type Child, startChild, startContender } from './child.js';
import { load, type Shot } from './load.js';
import { play } from './play.js';
import { type BenchOptions, compare, inTurn, type Report, scaled } from './rounds.js';

const REQUESTS = 20_000;
const CONNECTIONS = 32;
const GAME = 'connect-four';
const BOARD = `{ leaderboard(game: "${GAME}", first: 20) { rank agentId rating games wins draws losses provisional } }`;

/** The gateway's endpoints: GraphQL and REST against bare Fastify, and the Play stream against bare gRPC. */
export const gateway = inTurn((options) => withFolder((folder) => overHttp(folder, options)), play);

/** A whole arena with the house's ladder played, in a process of its own, as `agon start` makes it. */
async function overHttp(folder: string, options: BenchOptions): Promise<Report> {
  const agon = [...nodeFlags, join(packageRoot, 'ops', 'cli', 'agon.js'), 'start', '--data', join(folder, 'data')];
  const { PATH, HOME } = env;
  const settings = { env: { PATH, HOME, AGON_ANALYTICS: 'false' }, quiet: true, signal: 'SIGINT' } as const;
  const arena = startChild(execPath, [...agon, '--port', '0', '--json'], settings);
  const bare = startContender('hello');
  try {
    options.progress('the house plays its ladder');
    const { url } = JSON.parse(await arena.line()) as { url: string };
    const found = (await (await fetch(`${url}/v1/matches?game=${GAME}&status=settled&first=1`)).json()) as {
      items: { matchId: string }[];
    };
    const requests = scaled(options, REQUESTS);
    const answered = (shot: Shot) => () => load(shot, requests, CONNECTIONS);
    const contenders = {
      hello: answered({ url: `http://127.0.0.1:${await bare.round()}/` }),
      rest: answered({ url: `${url}/v1/matches/${found.items[0]?.matchId}` }),
      graphql: answered({ url: `${url}/graphql`, body: JSON.stringify({ query: BOARD }) }),
    };
    return await compare(contenders, options, {
      ratios: { rest: ['rest', 'hello'], graphql: ['graphql', 'hello'] },
      targets: { rest: 0.6, graphql: 0.35 },
      notes: [
        `Requests answered a second over ${CONNECTIONS} connections, each with one request at a time: a settled match by REST, ` +
          'and the first 20 of a leaderboard by GraphQL, of an arena that "agon start" made, against a constant by bare Fastify. ' +
          'Nothing happens in the arena meanwhile, so answers hold until the next match ends.',
      ],
    });
  } finally {
    await Promise.all([arena.stop(), bare.stop()]);
  }
}

/** In a process of its own: the least that an answer over HTTP can be, bare Fastify, no hooks, a constant. */
export async function hello(): Promise<Child> {
  const app = fastify();
  app.get('/', async () => ({ hello: 'world' }));
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  return { round: async () => Number(port), stop: () => app.close() };
}
