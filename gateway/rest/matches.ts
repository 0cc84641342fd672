import { Readable } from 'node:stream';
import { z } from 'zod';
import { listMatches, matchById, turnsOf } from '../../projections/matches/query.js';
import type { MatchRow, TurnRow } from '../../projections/matches/table.js';
import { AgonError } from '../../services/kernel/index.js';
import { publicMatch } from '../use-cases/matches.js';
import { type Asked, defineRoute, type RestContext } from './route.js';
import { accountId, agentId, cents, digest, game, matchId, name, page, paged, time } from './schemas.js';

const statuses = ['proposed', 'ready', 'playing', 'settled', 'voided', 'reversed'] as const;

const Match = name(
  'Match',
  z.strictObject({
    matchId,
    game,
    seed: z.string().nullable().describe('Told when the match is over.'),
    status: z.enum(statuses),
    reason: z.string().describe('The rule that ended it, or what it waits for.'),
    detail: z.string(),
    seats: z.array(
      z.strictObject({
        agentId: z.string(),
        accountId,
        version: z.int(),
        codeDigest: digest,
        runtime: z.string().optional(),
        score: z.number().optional(),
        payoutCents: cents.optional(),
        bountyCents: cents.optional(),
      }),
    ),
    winner: z.int().nullable().describe('The seat that won; null while nobody has.'),
    stakeCents: cents,
    potCents: cents,
    rakeCents: cents,
    currency: z.string(),
    turns: z.int(),
    attempts: z.int(),
    proposedAt: time,
    endedAt: time.nullable(),
  }),
);

const Turn = name(
  'Turn',
  z.strictObject({
    turn: z.int(),
    seat: z.int(),
    action: z.unknown().describe('As the agent gave it.'),
    fuel: z.string().describe('Compute spent on it, in the unit of its driver.'),
  }),
);

const Replay = name(
  'Replay',
  z.strictObject({
    format: z.literal('agon replay 1'),
    matchId,
    events: z
      .array(z.looseObject({ type: z.string(), hash: digest, prevHash: digest }))
      .describe('As the log has them.'),
  }),
);

const matchOf = ({ position: _position, ...row }: MatchRow): z.input<typeof Match> => ({
  ...publicMatch(row),
  seats: [...row.seats],
});

const turnOf = ({ turn, seat, action, fuel }: TurnRow): z.input<typeof Turn> => {
  return { turn, seat, action: JSON.parse(action) as unknown, fuel: `${fuel}` };
};

async function known({ ports }: RestContext, id: string): Promise<MatchRow> {
  const row = await matchById(ports.database, id);
  if (row) return row;
  throw new AgonError('ARENA.UNKNOWN_MATCH', `There is no match ${id}.`);
}

const one = { matchId };

export const matchRoutes = [
  defineRoute({
    id: 'listGames',
    path: '/v1/games',
    access: 'public',
    summary: 'The games that are played here.',
    answer: { description: 'Their names.', schema: name('Games', z.strictObject({ items: z.array(z.string()) })) },
    handle: (_asked, { ports }) => ({ items: ports.games }),
  }),
  defineRoute({
    id: 'listMatches',
    path: '/v1/matches',
    access: 'public',
    summary: 'Matches, newest first.',
    query: { ...page, game: game.optional(), status: z.enum(statuses).optional(), agentId: agentId.optional() },
    answer: { description: 'A page of matches.', schema: paged('Matches', Match) },
    handle: async ({ query }, { ports }) => {
      const { rows, next = null } = await listMatches(ports.database, query);
      return { items: rows.map(matchOf), next };
    },
  }),
  defineRoute({
    id: 'getMatch',
    path: '/v1/matches/{matchId}',
    access: 'public',
    summary: 'One match, as it stands.',
    params: one,
    answer: { description: 'The match.', schema: Match },
    handle: ({ params, reply }, rest) => {
      const key = `match ${params.matchId}`;
      reply.type('application/json; charset=utf-8');
      return (
        rest.answers.known<string>('matches', key) ??
        rest.answers.of('matches', key, async () => JSON.stringify(matchOf(await known(rest, params.matchId))))
      );
    },
  }),
  defineRoute({
    id: 'listTurns',
    path: '/v1/matches/{matchId}/turns',
    access: 'public',
    summary: 'The turns of a match that is over, in order.',
    params: one,
    answer: {
      description: 'All turns; none while the match goes on.',
      schema: name('Turns', z.strictObject({ items: z.array(Turn) })),
    },
    handle: async ({ params }, rest) => {
      await known(rest, params.matchId);
      return { items: (await turnsOf(rest.ports.database, [params.matchId])).map(turnOf) };
    },
  }),
  defineRoute({
    id: 'getReplay',
    path: '/v1/matches/{matchId}/replay',
    access: 'public',
    summary: 'The events of a match that is over, as a file that "agon match verify" checks without the arena.',
    params: one,
    answer: { description: 'The file.', schema: Replay },
    refuses: [409],
    handle: async (asked: Asked<typeof one>, rest) => {
      const { matchId: id } = asked.params;
      const { endedAt, status } = await known(rest, id);
      // The seed is among the events, and is told when the match is over.
      if (endedAt === null)
        throw new AgonError('ARENA.NOT_OVER', `The match ${id} is ${status}. Ask again when it is over.`);
      asked.reply
        .type('application/json; charset=utf-8')
        .header('content-disposition', `attachment; filename="match-${id}.replay.json"`);
      return Readable.from(replayText(id, await rest.ports.matchEvents(id)));
    },
  }),
];

/** An event a line: a long match is not put together in memory, and the file can be read by people. */
function* replayText(id: string, events: readonly unknown[]): Generator<string> {
  yield `{"format":"agon replay 1","matchId":${JSON.stringify(id)},"events":[`;
  for (const [i, event] of events.entries()) yield `${i === 0 ? '' : ','}\n${JSON.stringify(event)}`;
  yield '\n]}\n';
}
