import { z } from 'zod';
import { agentById, listAgents, versionsOf } from '../../projections/agents/query.js';
import type { AgentRow, VersionRow } from '../../projections/agents/table.js';
import type { Standing as StandingRow } from '../../projections/leaderboards/query.js';
import { SEASON } from '../../projections/leaderboards/table.js';
import { AgonError, agentRuntime, slug } from '../../services/kernel/index.js';
import { topOf } from '../answers.js';
import { submitAgent } from '../use-cases/agents.js';
import { defineRoute } from './route.js';
import { accountId, agentId, digest, game, name, page, paged, Receipt, time } from './schemas.js';
import { readUpload, UPLOAD_BYTES_MAX } from './upload.js';

const Version = name(
  'AgentVersion',
  z.strictObject({ version: z.int(), codeDigest: digest, codeBytes: z.int(), publishedAt: time }),
);

const fields = {
  agentId,
  ownerId: accountId,
  name: slug,
  games: z.array(z.string()),
  runtime: z.string().describe('What runs it; "external" for an agent that plays from outside.'),
  version: z.int(),
  codeDigest: z.string().describe('SHA-256 of its code, in hex.'),
  submittedAt: time,
  updatedAt: time,
};
const Agent = name('Agent', z.strictObject(fields));
const AgentWithVersions = name('AgentWithVersions', z.strictObject({ ...fields, versions: z.array(Version) }));

const agentOf = (row: AgentRow): z.input<typeof Agent> => ({ ...row, games: [...row.games] });
const versionOf = ({ version, codeDigest, codeBytes, publishedAt }: VersionRow): z.input<typeof Version> => {
  return { version, codeDigest, codeBytes, publishedAt };
};

const Confidence = z.strictObject({
  rating: z.number(),
  deviation: z.number(),
  low: z.number(),
  high: z.number(),
  volatility: z.number(),
  provisional: z.boolean(),
});
const Standing = name(
  'Standing',
  z.strictObject({
    rank: z.int(),
    agentId,
    rating: z.number().describe('Elo.'),
    provisional: z.boolean().describe('Fewer than 30 games.'),
    games: z.int(),
    wins: z.int(),
    draws: z.int(),
    losses: z.int(),
    streak: z.int(),
    confidence: Confidence.describe('Glicko-2, and between which ratings it is with 95 percent confidence.'),
  }),
);

const standingOf = (row: StandingRow): z.input<typeof Standing> => {
  const { rank, agentId, rating, provisional, games, wins, draws, losses, streak, confidence } = row;
  return { rank, agentId, rating, provisional, games, wins, draws, losses, streak, confidence };
};

const upload = {
  games: z.array(game).min(1).max(16).describe('The games it plays.'),
  runtime: agentRuntime
    .optional()
    .describe('What runs it; left out, an archive says so itself, and a file is javascript.'),
} as const;

export const agentRoutes = [
  defineRoute({
    id: 'listAgents',
    path: '/v1/agents',
    access: 'public',
    summary: 'Agents, by their names.',
    query: { ...page, ownerId: accountId.optional() },
    answer: { description: 'A page of agents.', schema: paged('Agents', Agent) },
    handle: async ({ query: { ownerId, ...request } }, { ports }) => {
      const { rows, next = null } = await listAgents(ports.database, { ...request, ...(ownerId ? { ownerId } : {}) });
      return { items: rows.map(agentOf), next };
    },
  }),
  defineRoute({
    id: 'getAgent',
    path: '/v1/agents/{agentId}',
    access: 'public',
    summary: 'One agent, with its versions.',
    params: { agentId },
    answer: { description: 'The agent.', schema: AgentWithVersions },
    handle: async ({ params }, { ports }) => {
      const row = await agentById(ports.database, params.agentId);
      if (!row) throw new AgonError('AGENTS.UNKNOWN', `There is no agent ${params.agentId}.`);
      const versions = await versionsOf(ports.database, [row.agentId]);
      return { ...agentOf(row), versions: versions.map(versionOf) };
    },
  }),
  defineRoute({
    id: 'uploadAgent',
    method: 'PUT',
    path: '/v1/accounts/{accountId}/agents/{name}',
    summary: 'Submits an agent, or a new version of it: a file of code, or a tar, tar.gz or zip of several.',
    params: { accountId, name: slug.describe("The agent's name.") },
    query: upload,
    takes: {
      as: 'stream',
      type: 'application/octet-stream',
      description: `Code in UTF-8, or an archive; at most ${UPLOAD_BYTES_MAX} bytes.`,
    },
    answer: { description: 'What came of it.', schema: Receipt },
    refuses: [402, 408, 409, 413, 422],
    handle: async ({ params, query, request, context }, { ports }) => {
      const agent = { ownerId: params.accountId, name: params.name, games: query.games };
      return submitAgent(ports, await context(), agent, async () => {
        const content = await readUpload(request.raw, request.headers['content-length']);
        const { source, runtime } = ports.readAgent(content);
        return { source, runtime: query.runtime ?? runtime };
      });
    },
  }),
  defineRoute({
    id: 'getLeaderboard',
    path: '/v1/leaderboards/{game}',
    access: 'public',
    summary: 'Who is better than whom, best first.',
    params: { game },
    query: {
      first: page.first,
      season: z
        .string()
        .regex(SEASON, 'must be a quarter as 2026-Q1, or all')
        .default('all')
        .describe('A quarter as 2026-Q1, or all.'),
      by: z.enum(['elo', 'glicko']).default('elo').describe('What to rank by.'),
    },
    answer: {
      description: 'The first of the board.',
      schema: name('Leaderboard', z.strictObject({ items: z.array(Standing) })),
    },
    handle: async ({ params, query }, { ports }) => {
      if (!ports.games.includes(params.game)) {
        const text = `There is no game ${params.game}. Games: ${ports.games.join(', ')}.`;
        throw new AgonError('ARENA.UNKNOWN_GAME', text);
      }
      return { items: (await topOf(ports, { ...params, ...query })).map(standingOf) };
    },
  }),
];
