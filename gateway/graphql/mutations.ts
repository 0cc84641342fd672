import { Inject } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Args, Context, Mutation, Resolver } from '@nestjs/graphql';
import { accountById, agentsById } from '../../projections/agents/query.js';
import type { AgentRow } from '../../projections/agents/table.js';
import { RegisterOwner } from '../../services/accounts/index.js';
import { agentIdOf } from '../../services/agents/index.js';
import { type MatchProposed, ProposeMatch, ReverseMatch, VoidMatch } from '../../services/arena/index.js';
import {
  AgonError,
  type Command,
  type CommandMeta,
  canonical,
  derivedId,
  type Handled,
  ownerOf,
  seatRuntimeNamed,
} from '../../services/kernel/index.js';
import { RevokeRunner } from '../../services/runners/index.js';
import { FreezeWallet, GrantCredits, SetBudget, UnfreezeWallet } from '../../services/wallet/index.js';
import { assertActsOn, metaOf, type RequestContext } from '../auth/actor.js';
import { type Plans, plansOf } from '../plans.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { submitCode } from '../submit.js';
import { Receipt } from './types.js';

const text = (description?: string) => ({ type: () => String, ...(description ? { description } : {}) });

/** Everything that can be asked for. Each is one command. */
@Resolver()
export class Mutations {
  private readonly plans: Plans;

  constructor(
    @Inject(PORTS) private readonly ports: GatewayPorts,
    @Inject(CommandBus) private readonly commands: CommandBus,
  ) {
    this.plans = plansOf(ports);
  }

  @Mutation(() => Receipt, { description: 'Registers an owner of agents.' })
  async registerOwner(
    @Args('accountId', text()) accountId: string,
    @Args('displayName', text()) displayName: string,
    @Context() context: RequestContext,
  ) {
    return this.send(accountId, new RegisterOwner({ accountId, displayName }, this.meta(context, 'RegisterOwner')));
  }

  @Mutation(() => Receipt, { description: 'Grants play credits.' })
  async grantCredits(
    @Args('accountId', text()) accountId: string,
    @Args('amountCents', text()) amountCents: string,
    @Args('reason', { ...text(), defaultValue: 'grant' }) reason: string,
    @Context() context: RequestContext,
  ) {
    const meta = this.meta(context, 'GrantCredits');
    await this.assertOwner(accountId);
    return this.send(accountId, new GrantCredits({ accountId, amountCents, currency: 'PLAY', reason }, meta));
  }

  @Mutation(() => Receipt, { description: 'Submits an agent, or a new version of one that exists.' })
  async submitAgent(
    @Args('ownerId', text()) ownerId: string,
    @Args('name', text()) name: string,
    @Args('games', { type: () => [String] }) games: string[],
    @Args('source', text('Code that defines act(observation).')) source: string,
    @Args('runtime', { ...text('What runs it: javascript, node or python.'), defaultValue: 'javascript' })
    runtimeName: string,
    @Context() context: RequestContext,
  ) {
    const meta = this.meta(context, 'SubmitAgent');
    assertActsOn(context, agentIdOf(ownerId, name), 'SubmitAgent');
    await this.assertOwner(ownerId);
    for (const game of games) this.assertGame(game);
    const submission = { ownerId, name, games, source, runtime: runtimeName };
    const agentId = agentIdOf(ownerId, name);
    return this.plans.newAgent(ownerId, agentId, () =>
      submitCode(this.ports, submission, meta, (id, command) => this.send(id, command)),
    );
  }

  @Mutation(() => Receipt, { description: 'Proposes a match. It is played once the stakes are in escrow.' })
  async proposeMatch(
    @Args('game', text()) game: string,
    @Args('agents', { type: () => [String], description: 'In the order of their seats.' }) agents: string[],
    @Args('stakeCents', { ...text('Each seat stakes this much.'), defaultValue: '0' }) stakeCents: string,
    @Args('seed', { ...text('Chance and agents draw from it.'), nullable: true }) seed: string | undefined,
    @Args('currency', { ...text('Of the stakes and the bounty.'), defaultValue: 'PLAY' }) currency: string,
    @Args('bountyCents', { ...text('A prize beside the pot.'), nullable: true }) bountyCents: string | undefined,
    @Args('sponsorId', { ...text('Whose wallet the bounty comes from.'), nullable: true }) sponsorId:
      | string
      | undefined,
    @Context() context: RequestContext,
  ) {
    const meta = this.meta(context, 'ProposeMatch');
    this.assertGame(game);
    const matchId = derivedId(meta.id, 'match');
    const bounty = bountyOf(matchId, bountyCents, sponsorId);
    const asked = { game, agents, stakeCents, currency, seed: seed ?? matchId, ...bounty };
    const known = await this.ports.proposalOf(matchId);
    if (known) return repeatedProposal(known, asked);
    this.ports.assertSeats(game, agents.length);
    const players = await agentsById(this.ports.database, agents);
    const seats = agents.map((agentId) => seatOf(players, agentId, game));
    const { rakeBps, disputeWindowMs, computeCents } = this.ports;
    const data = {
      matchId,
      game,
      seed: asked.seed,
      seats,
      stakeCents,
      currency,
      rakeBps,
      disputeWindowMs,
      ...(computeCents === '0' ? {} : { computeCents }),
      ...bounty,
    };
    const accounts = seats.map(({ accountId }) => accountId);
    return this.plans.newMatch(accounts, (priority) =>
      this.send(matchId, new ProposeMatch(priority > 0 ? { ...data, priority } : data, meta)),
    );
  }

  @Mutation(() => Receipt, { description: 'Calls off a match that is not settled, and gives the stakes back.' })
  voidMatch(
    @Args('matchId', text()) matchId: string,
    @Args('detail', text('Why.')) detail: string,
    @Context() context: RequestContext,
  ) {
    return this.send(matchId, new VoidMatch({ matchId, detail }, this.meta(context, 'VoidMatch')));
  }

  @Mutation(() => Receipt, {
    description: 'Undoes a settled match: every stake goes back, and what was won is taken back.',
  })
  reverseMatch(
    @Args('matchId', text()) matchId: string,
    @Args('reason', text('Why.')) reason: string,
    @Context() context: RequestContext,
  ) {
    return this.send(matchId, new ReverseMatch({ matchId, reason }, this.meta(context, 'ReverseMatch')));
  }

  @Mutation(() => Receipt, { description: 'Stops or allows withdrawals from a wallet. Play goes on.' })
  freezeWallet(
    @Args('accountId', text()) accountId: string,
    @Args('frozen', { type: () => Boolean }) frozen: boolean,
    @Args('reason', text('Why.')) reason: string,
    @Context() context: RequestContext,
  ) {
    const Freeze = frozen ? FreezeWallet : UnfreezeWallet;
    return this.send(accountId, new Freeze({ accountId, reason }, this.meta(context, Freeze.spec.type)));
  }

  @Mutation(() => Receipt, {
    description: 'Caps what a wallet, or one of its agents, may spend. A cap left out is lifted.',
  })
  async setBudget(
    @Args('accountId', text()) accountId: string,
    @Args('currency', { ...text(), defaultValue: 'COMPUTE' }) currency: string,
    @Args('agentId', { ...text(), nullable: true }) agentId: string | undefined,
    @Args('perRunCents', { ...text(), nullable: true }) perRunCents: string | undefined,
    @Args('perDayCents', { ...text(), nullable: true }) perDayCents: string | undefined,
    @Args('totalCents', { ...text(), nullable: true }) totalCents: string | undefined,
    @Context() context: RequestContext,
  ) {
    const meta = this.meta(context, 'SetBudget');
    await this.assertOwner(accountId);
    const given = Object.entries({ agentId, perRunCents, perDayCents, totalCents }).filter(
      ([, value]) => value != null,
    );
    const data = { accountId, currency, ...Object.fromEntries(given) };
    return this.send(accountId, new SetBudget(data, meta));
  }

  @Mutation(() => Receipt, { description: "Ends the trust in a runner's key, for good." })
  revokeRunner(
    @Args('runnerId', text()) runnerId: string,
    @Args('reason', text('Why.')) reason: string,
    @Context() context: RequestContext,
  ) {
    return this.send(runnerId, new RevokeRunner({ runnerId, reason }, this.meta(context, 'RevokeRunner')));
  }

  private meta(context: RequestContext, commandType: string): CommandMeta {
    return metaOf(this.ports, context, commandType);
  }

  private async send(id: string, command: Command): Promise<Receipt> {
    const handled: Handled = await this.commands.execute(command);
    const { position, repeated } = handled;
    await this.ports.visible(position);
    return { id, events: handled.events.map((event) => event.type), position, repeated };
  }

  private async assertOwner(accountId: string): Promise<void> {
    if (await accountById(this.ports.database, accountId)) return;
    throw new AgonError('ACCOUNTS.UNKNOWN', `There is no account ${accountId}. Register it first.`);
  }

  private assertGame(game: string): void {
    const { games } = this.ports;
    if (!games.includes(game)) {
      throw new AgonError('SANDBOX.UNKNOWN_GAME', `There is no game ${game}. Games: ${games.join(', ')}.`);
    }
  }
}

function seatOf(known: readonly AgentRow[], agentId: string, game: string) {
  const agent = known.find((each) => each.agentId === agentId);
  if (!agent) throw new AgonError('AGENTS.UNKNOWN', `There is no agent ${agentId}.`);
  if (!agent.games.includes(game)) {
    throw new AgonError('AGENTS.OTHER_GAME', `${agentId} plays ${agent.games.join(', ')}, not ${game}.`);
  }
  const { version, codeDigest } = agent;
  // Whose money is staked follows from the agent's id: a read model may be wrong about what it shows, never about that.
  return { agentId, accountId: ownerOf(agentId), version, codeDigest, runtime: seatRuntimeNamed(agent.runtime) };
}

function bountyOf(matchId: string, amountCents: string | undefined, sponsorId: string | undefined) {
  if (amountCents == null && sponsorId == null) return {};
  if (amountCents == null || sponsorId == null)
    throw new AgonError('COMMAND.INVALID', 'A bounty takes both bountyCents and sponsorId.');
  return { bounty: { bountyId: matchId, sponsorId, amountCents } };
}

/**
 * A proposal holds what the server looked up, such as the agents' versions, and those may have changed since. So a
 * repeated request is recognised by what the caller asked for.
 */
function repeatedProposal(
  { data: before, position }: { data: MatchProposed['data']; position: number },
  asked: Pick<MatchProposed['data'], 'game' | 'stakeCents' | 'currency' | 'seed' | 'bounty'> & { agents: string[] },
): Receipt {
  const textOf = ({ game, seed, stakeCents, currency, bounty }: typeof before | typeof asked, agents: string[]) =>
    canonical({ game, seed, stakeCents, currency, agents, bounty: bounty ?? null });
  const was = textOf(
    before,
    before.seats.map(({ agentId }) => agentId),
  );
  if (was !== textOf(asked, asked.agents)) {
    throw new AgonError('COMMAND.KEY_REUSED', 'This Idempotency-Key was used before for another match.');
  }
  return { id: before.matchId, events: ['MatchProposed'], position, repeated: true };
}
