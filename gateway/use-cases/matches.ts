import type { MatchRow } from '../../projections/matches/table.js';
import { type MatchProposed, ProposeMatch, ReverseMatch, VoidMatch } from '../../services/arena/index.js';
import { AgonError, type CommandMeta, canonical, derivedId, type Load, ownerOf } from '../../services/kernel/index.js';
import { metaOf, type RequestContext } from '../auth/actor.js';
import type { GatewayPorts } from '../ports.js';
import { agentIn, assertPlays } from './agents.js';
import { type AskPorts, asks, assertGame, type Receipt, send } from './ask.js';
import { type PlanPorts, plansOf } from './plans.js';

export type MatchPorts = AskPorts &
  PlanPorts &
  Pick<GatewayPorts, 'load' | 'games' | 'assertSeats' | 'rakeBps' | 'disputeWindowMs' | 'computeCents'>;

type Terms = Pick<MatchProposed['data'], 'game' | 'stakeCents' | 'currency' | 'seed' | 'bounty'> & {
  /** In the order of their seats. */
  readonly agents: readonly string[];
};

export interface MatchRequest {
  readonly game: string;
  readonly agents: string[];
  readonly stakeCents: string;
  readonly currency: string;
  readonly seed?: string;
  readonly bountyCents?: string;
  readonly sponsorId?: string;
}

export async function proposeMatch(
  ports: MatchPorts & Pick<GatewayPorts, 'proposalOf'>,
  context: RequestContext,
  { bountyCents, sponsorId, ...request }: MatchRequest,
): Promise<Receipt> {
  const meta = metaOf(ports, context, 'ProposeMatch');
  assertGame(ports, request.game);
  const matchId = matchIdOf(meta);
  const terms: Terms = { seed: matchId, ...request, ...bountyOf(matchId, bountyCents, sponsorId) };
  const known = await ports.proposalOf(matchId);
  if (known) return repeatedProposal(known, terms);
  ports.assertSeats(request.game, request.agents.length);
  return propose(ports, meta, terms);
}

/** The id of the match that is proposed by a command with this meta. */
export const matchIdOf = (meta: CommandMeta): string => derivedId(meta.id, 'match');

/** Proposes a match on the terms of this arena, between agents as they are now, as far as plans allow it. */
export async function propose(ports: MatchPorts, meta: CommandMeta, { agents, ...terms }: Terms): Promise<Receipt> {
  const { rakeBps, disputeWindowMs, computeCents } = ports;
  const matchId = matchIdOf(meta);
  const seats = await Promise.all(agents.map((agentId) => seatOf(ports.load, agentId, terms.game)));
  const fee = computeCents === '0' ? {} : { computeCents };
  const data = { matchId, seats, rakeBps, disputeWindowMs, ...terms, ...fee };
  const accounts = seats.map(({ accountId }) => accountId);
  return plansOf(ports).newMatch(accounts, (priority) =>
    send(ports, matchId, new ProposeMatch(priority > 0 ? { ...data, priority } : data, meta)),
  );
}

export async function seatOf(load: Load, agentId: string, game: string) {
  const agent = await agentIn(load, agentId);
  assertPlays(agentId, agent, game);
  const { version, codeDigest, runtime } = agent;
  return { agentId, accountId: ownerOf(agentId), version, codeDigest, runtime };
}

function bountyOf(matchId: string, amountCents: string | undefined, sponsorId: string | undefined) {
  if (amountCents === undefined && sponsorId === undefined) return {};
  if (amountCents === undefined || sponsorId === undefined)
    throw new AgonError('COMMAND.INVALID', 'A bounty takes both bountyCents and sponsorId.');
  return { bounty: { bountyId: matchId, sponsorId, amountCents } };
}

/**
 * A proposal holds what the server looked up, such as the agents' versions, and those may have changed since. So a
 * repeated request is recognised by what the caller asked for.
 */
function repeatedProposal(
  { data: before, position }: { data: MatchProposed['data']; position: number },
  asked: Terms,
): Receipt {
  const textOf = ({ game, seed, stakeCents, currency, bounty, agents }: Terms) =>
    canonical({ game, seed, stakeCents, currency, agents, bounty: bounty ?? null });
  const agents = before.seats.map(({ agentId }) => agentId);
  if (textOf({ ...before, agents }) !== textOf(asked)) {
    throw new AgonError('COMMAND.KEY_REUSED', 'This Idempotency-Key was used before for another match.');
  }
  return { id: before.matchId, events: ['MatchProposed'], position, repeated: true };
}

/**
 * What everybody may see of a match, with amounts as text. Whoever knows the seed of one that is being played knows what
 * its dice will show.
 */
export const publicMatch = <Row extends Pick<MatchRow, 'seed' | 'endedAt' | 'stakeCents' | 'potCents' | 'rakeCents'>>(
  row: Row,
) => ({
  ...row,
  seed: row.endedAt === null ? null : row.seed,
  stakeCents: `${row.stakeCents}`,
  potCents: `${row.potCents}`,
  rakeCents: `${row.rakeCents}`,
});

export const voidMatch = asks(VoidMatch, ({ matchId }) => matchId);

export const reverseMatch = asks(ReverseMatch, ({ matchId }) => matchId);
