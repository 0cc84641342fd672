import { Field, Float, Int, ObjectType } from '@nestjs/graphql';
import { connectionOf, Node } from './relay.js';

// Money is a string of whole cents: GraphQL's Int has 32 bits, and a Float would round.

const NODE = { implements: () => [Node] } as const;

@ObjectType({ ...NODE, description: 'An owner of agents.' })
export class Account extends Node {
  @Field(() => String) accountId!: string;
  @Field(() => String) displayName!: string;
  @Field(() => String) registeredAt!: string;
}

@ObjectType()
export class AccountConnection extends connectionOf(Account, 'Account') {}

@ObjectType({ ...NODE, description: 'An agent: code that plays, under an owner and a name.' })
export class Agent extends Node {
  @Field(() => String) agentId!: string;
  @Field(() => String) ownerId!: string;
  @Field(() => String) name!: string;
  @Field(() => [String]) games!: readonly string[];
  @Field(() => String) runtime!: string;
  @Field(() => Int) version!: number;
  @Field(() => String, { description: 'SHA-256 of the code.' }) codeDigest!: string;
  @Field(() => String) submittedAt!: string;
  @Field(() => String) updatedAt!: string;
}

@ObjectType(NODE)
export class AgentVersion extends Node {
  @Field(() => String) agentId!: string;
  @Field(() => Int) version!: number;
  @Field(() => String) codeDigest!: string;
  @Field(() => Int) codeBytes!: number;
  @Field(() => String) publishedAt!: string;
}

@ObjectType()
export class AgentConnection extends connectionOf(Agent, 'Agent') {}

@ObjectType()
export class AgentVersionConnection extends connectionOf(AgentVersion, 'AgentVersion') {}

@ObjectType()
export class Seat {
  @Field(() => String) agentId!: string;
  @Field(() => String) accountId!: string;
  @Field(() => Int) version!: number;
  @Field(() => String) codeDigest!: string;
  @Field(() => Float, { nullable: true }) score?: number;
  @Field(() => String, { nullable: true }) payoutCents?: string;
}

@ObjectType()
export class Turn {
  @Field(() => Int) turn!: number;
  @Field(() => Int) seat!: number;
  @Field(() => String, { description: 'The action as JSON.' }) action!: string;
  @Field(() => String, { description: 'Deterministic compute spent on it.' }) fuel!: string;
}

@ObjectType()
export class TurnConnection extends connectionOf(Turn, 'Turn') {}

@ObjectType({ description: 'A match in the hands of a runner.' })
export class Lease {
  @Field(() => String) matchId!: string;
  @Field(() => String) runnerId!: string;
  @Field(() => Int) attempt!: number;
  @Field(() => String, { description: 'When it is taken back, unless the runner says that it is at work.' })
  leaseUntil!: string;
}

@ObjectType()
export class LeaseConnection extends connectionOf(Lease, 'Lease') {}

@ObjectType({ ...NODE, description: 'Plays matches, and signs for how they came out.' })
export class Runner extends Node {
  @Field(() => String) runnerId!: string;
  @Field(() => String, { description: 'Ed25519, in hexadecimal.' }) publicKey!: string;
  @Field(() => String, { description: 'registered or revoked.' }) status!: string;
  @Field(() => String, { description: 'Why it was revoked; empty while it is trusted.' }) reason!: string;
  @Field(() => String) registeredAt!: string;
  @Field(() => String, { description: 'When it last claimed, kept or reported a match.' }) seenAt!: string;
  @Field(() => Int) claimed!: number;
  @Field(() => Int) played!: number;
}

@ObjectType()
export class RunnerConnection extends connectionOf(Runner, 'Runner') {}

@ObjectType({ ...NODE, description: 'A match, from proposal to settlement.' })
export class Match extends Node {
  @Field(() => String) matchId!: string;
  @Field(() => String) game!: string;
  @Field(() => String, { nullable: true, description: 'Told when the match is over.' }) seed!: string | null;
  @Field(() => String, { description: 'proposed, ready, playing, settled or voided.' }) status!: string;
  @Field(() => String, { description: 'The rule that ended it, or what it waits for.' }) reason!: string;
  @Field(() => String) detail!: string;
  @Field(() => [Seat]) seats!: readonly Seat[];
  @Field(() => Int, { nullable: true, description: 'The winning seat; null for a draw.' }) winner!: number | null;
  @Field(() => String) stakeCents!: string;
  @Field(() => String) potCents!: string;
  @Field(() => String) rakeCents!: string;
  @Field(() => String) currency!: string;
  @Field(() => Int) turns!: number;
  @Field(() => Int) attempts!: number;
  @Field(() => String) proposedAt!: string;
  @Field(() => String, { nullable: true }) endedAt!: string | null;
}

@ObjectType()
export class MatchConnection extends connectionOf(Match, 'Match') {}

@ObjectType({ description: 'An agent that waits for an opponent.' })
export class WaitingAgent {
  @Field(() => String) agentId!: string;
  @Field(() => String) accountId!: string;
  @Field(() => String) game!: string;
  @Field(() => String) stakeCents!: string;
  @Field(() => String) currency!: string;
  @Field(() => String, { description: 'What it waits for.' }) reason!: string;
}

@ObjectType({ description: 'What waits, and what for. Each match says its reason.' })
export class Queue {
  @Field(() => Int, { description: 'Waiting for stakes.' }) proposed!: number;
  @Field(() => Int, { description: 'Waiting for a runner.' }) ready!: number;
  @Field(() => Int, { description: 'In the hands of a runner.' }) playing!: number;
}

@ObjectType({ description: 'Glicko-2: a rating, and how certain it is.' })
export class Confidence {
  @Field(() => Float) rating!: number;
  @Field(() => Float, { description: 'The rating deviation; it grows on days without a match.' }) deviation!: number;
  @Field(() => Float, { description: 'The rating less two deviations.' }) low!: number;
  @Field(() => Float, { description: 'The rating and two deviations.' }) high!: number;
  @Field(() => Float) volatility!: number;
  @Field(() => Boolean, { description: 'A deviation of 110 or more.' }) provisional!: boolean;
}

@ObjectType()
export class Standing {
  @Field(() => Int) rank!: number;
  @Field(() => String) season!: string;
  @Field(() => String) agentId!: string;
  @Field(() => Float, { description: 'Elo.' }) rating!: number;
  @Field(() => Confidence) confidence!: Confidence;
  @Field(() => Int, { description: 'Wins in a row; losses as a negative number.' }) streak!: number;
  @Field(() => Int, { description: 'The most wins in a row.' }) bestStreak!: number;
  @Field(() => Int) games!: number;
  @Field(() => Int) wins!: number;
  @Field(() => Int) draws!: number;
  @Field(() => Int) losses!: number;
  @Field(() => Boolean, { description: 'Fewer than 30 games.' }) provisional!: boolean;
}

@ObjectType()
export class StandingConnection extends connectionOf(Standing, 'Standing') {}

@ObjectType()
export class RatingChange {
  @Field(() => String) season!: string;
  @Field(() => String, { description: 'Of the settlement in the log.' }) position!: string;
  @Field(() => Int) games!: number;
  @Field(() => String) matchId!: string;
  @Field(() => Float) before!: number;
  @Field(() => Float) after!: number;
  @Field(() => Float, { description: 'Glicko-2 after the match.' }) glicko!: number;
  @Field(() => Float) deviation!: number;
  @Field(() => Float) volatility!: number;
  @Field(() => String) at!: string;
}

@ObjectType()
export class RatingChangeConnection extends connectionOf(RatingChange, 'RatingChange') {}

@ObjectType({ description: 'How an agent stood at a moment of the past.' })
export class PastRating extends RatingChange {
  @Field(() => Confidence, { description: 'As of the moment asked for.' }) confidence!: Confidence;
}

@ObjectType({ description: 'How one agent did against another.' })
export class HeadToHead {
  @Field(() => String) agentId!: string;
  @Field(() => String) opponentId!: string;
  @Field(() => Int) wins!: number;
  @Field(() => Int) draws!: number;
  @Field(() => Int) losses!: number;
}

@ObjectType()
export class HeadToHeadConnection extends connectionOf(HeadToHead, 'HeadToHead') {}

@ObjectType({
  description:
    'Bradley-Terry strength by a hundred resamplings. All intervals hold at once, with 95 percent confidence.',
})
export class Strength {
  @Field(() => String) agentId!: string;
  @Field(() => Float, { description: 'On the scale of Elo, with the mean of all at 1500.' }) rating!: number;
  @Field(() => Float) low!: number;
  @Field(() => Float) high!: number;
}

// Where the store gives byte offsets for positions, they pass 32 bits; none passes what a double holds exactly.
const POSITION = 'Of the log.';

@ObjectType()
export class Build {
  @Field(() => String, { description: 'building or swapping.' }) phase!: string;
  @Field(() => Float, { description: POSITION }) position!: number;
  @Field(() => Float, { description: 'The end of the log, as a position.' }) total!: number;
  @Field(() => Int) eventsPerSecond!: number;
  @Field(() => Int) secondsLeft!: number;
  /** Shown by a resolver, which asks who wants to know. */
  trouble!: string | null;
}

@ObjectType({ ...NODE, description: 'A view of the log, and how far it has come.' })
export class Projection extends Node {
  @Field(() => String) view!: string;
  @Field(() => Int, { description: 'Of the code.' }) version!: number;
  @Field(() => Int, { nullable: true, description: 'Of the rows that serve.' }) servingVersion!: number | null;
  @Field(() => Float, { description: POSITION }) position!: number;
  @Field(() => Float, { description: 'How many positions behind: events, or bytes of EventStoreDB’s log.' })
  lagEvents!: number;
  @Field(() => Int) deadLetters!: number;
  @Field(() => Build, { nullable: true, description: 'What is being built beside it.' }) build!: Build | null;
}

@ObjectType({ description: 'An event that a view could not take in.' })
export class DeadLetter {
  @Field(() => String) group!: string;
  @Field(() => Float, { description: POSITION }) position!: number;
  @Field(() => String) eventId!: string;
  @Field(() => String) type!: string;
  @Field(() => Int) version!: number;
  @Field(() => String) code!: string;
  @Field(() => String) message!: string;
}

@ObjectType({ description: 'An event that a policy gave up on, with the reason.' })
export class BusLetter {
  @Field(() => String) group!: string;
  @Field(() => Float) position!: number;
  @Field(() => String) eventId!: string;
  @Field(() => Int) attempts!: number;
  @Field(() => String) code!: string;
  @Field(() => String) message!: string;
}

@ObjectType({ description: 'What became of dead letters that were handed out again.' })
export class Replayed {
  @Field(() => [BusLetter]) done!: BusLetter[];
  @Field(() => [BusLetter], { description: 'What failed again, with the new reason.' }) left!: BusLetter[];
}

@ObjectType()
export class DeadLetterConnection extends connectionOf(DeadLetter, 'DeadLetter') {}

@ObjectType({ description: 'An account of the ledger, such as player:<name>, escrow or house:rake.' })
export class Balance {
  @Field(() => String) account!: string;
  @Field(() => String) currency!: string;
  @Field(() => String) balanceCents!: string;
}

@ObjectType()
export class BalanceConnection extends connectionOf(Balance, 'Balance') {}

@ObjectType({ description: 'A line of the ledger. The lines of one position sum to zero.' })
export class Posting {
  @Field(() => String) position!: string;
  @Field(() => String) at!: string;
  @Field(() => String) eventType!: string;
  @Field(() => String) account!: string;
  @Field(() => String) currency!: string;
  @Field(() => String) amountCents!: string;
  @Field(() => String, { nullable: true }) matchId!: string | null;
}

@ObjectType()
export class PostingConnection extends connectionOf(Posting, 'Posting') {}

@ObjectType({ description: 'All accounts of a currency. They sum to zero.' })
export class TrialBalance {
  @Field(() => String) currency!: string;
  @Field(() => [Balance], { description: 'The chart of accounts; all players together are one line.' })
  accounts!: readonly Balance[];
  @Field(() => String) sumCents!: string;
}

@ObjectType({ description: 'One currency of a wallet.' })
export class Purse {
  @Field(() => String) currency!: string;
  @Field(() => String, { description: 'What can be staked or spent.' }) availableCents!: string;
  @Field(() => String, { description: 'What could be withdrawn at this moment.' }) withdrawableCents!: string;
  @Field(() => String) heldCents!: string;
  @Field(() => String) owedCents!: string;
}

@ObjectType({ description: 'Caps on what is held for play and runs, and how much of them is used.' })
export class Budget {
  @Field(() => String) currency!: string;
  @Field(() => String, { nullable: true, description: 'Of one agent; of the whole wallet without it.' })
  agentId!: string | null;
  @Field(() => String, { nullable: true }) perRunCents!: string | null;
  @Field(() => String, { nullable: true }) perDayCents!: string | null;
  @Field(() => String, { nullable: true }) totalCents!: string | null;
  @Field(() => String, { description: 'Since it was set.' }) spentCents!: string;
  @Field(() => String, { description: 'Today, in UTC.' }) spentTodayCents!: string;
}

@ObjectType({ description: 'A wallet, folded from its own events.' })
export class Wallet {
  @Field(() => String) accountId!: string;
  @Field(() => [Purse]) purses!: readonly Purse[];
  @Field(() => Boolean, { description: 'Withdrawals are stopped.' }) frozen!: boolean;
  @Field(() => [Budget]) budgets!: readonly Budget[];
}

@ObjectType({ description: 'What a seat would cost, and whether it could be paid for right now.' })
export class SeatCost {
  @Field(() => String) agentId!: string;
  @Field(() => String) accountId!: string;
  @Field(() => String) stakeCents!: string;
  @Field(() => String) currency!: string;
  @Field(() => String, { description: 'In COMPUTE.' }) computeCents!: string;
  @Field(() => String, { nullable: true, description: 'Why it would be refused; null if it would not.' })
  refusal!: string | null;
}

@ObjectType({ description: 'What a command did.' })
export class Receipt {
  @Field(() => String) id!: string;
  @Field(() => [String]) events!: readonly string[];
  @Field(() => Float, { description: 'Its place in the log.' }) position!: number;
  @Field(() => Boolean, { description: 'True when the same request had been carried out before.' }) repeated!: boolean;
}
