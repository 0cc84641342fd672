import { Field, Float, Int, ObjectType } from '@nestjs/graphql';

// Money is a string of whole cents: GraphQL's Int has 32 bits, and a Float would round.

@ObjectType({ description: 'An agent: code that plays, under an owner and a name.' })
export class Agent {
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

@ObjectType()
export class AgentVersion {
  @Field(() => Int) version!: number;
  @Field(() => String) codeDigest!: string;
  @Field(() => Int) codeBytes!: number;
  @Field(() => String) publishedAt!: string;
}

@ObjectType()
export class PageInfo {
  @Field(() => Boolean) hasNextPage!: boolean;
  @Field(() => String, { nullable: true }) endCursor!: string | null;
}

@ObjectType()
export class AgentPage {
  @Field(() => [Agent]) nodes!: readonly Agent[];
  @Field(() => PageInfo) pageInfo!: PageInfo;
}

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

@ObjectType({ description: 'A match, from proposal to settlement.' })
export class Match {
  @Field(() => String) matchId!: string;
  @Field(() => String) game!: string;
  @Field(() => String) seed!: string;
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
export class MatchPage {
  @Field(() => [Match]) nodes!: readonly Match[];
  @Field(() => PageInfo) pageInfo!: PageInfo;
}

@ObjectType()
export class Standing {
  @Field(() => Int) rank!: number;
  @Field(() => String) agentId!: string;
  @Field(() => Float) rating!: number;
  @Field(() => Int) games!: number;
  @Field(() => Int) wins!: number;
  @Field(() => Int) draws!: number;
  @Field(() => Int) losses!: number;
  @Field(() => Boolean, { description: 'Fewer than 30 games.' }) provisional!: boolean;
}

@ObjectType()
export class RatingChange {
  @Field(() => Int) games!: number;
  @Field(() => String) matchId!: string;
  @Field(() => Float) before!: number;
  @Field(() => Float) after!: number;
  @Field(() => String) at!: string;
}

@ObjectType({ description: 'A ledger account: player:<name>, escrow, house:rake or house:grants.' })
export class Balance {
  @Field(() => String) account!: string;
  @Field(() => String) currency!: string;
  @Field(() => String) balanceCents!: string;
}

@ObjectType({ description: 'What a command did.' })
export class Receipt {
  @Field(() => String) id!: string;
  @Field(() => [String]) events!: readonly string[];
  @Field(() => Int, { description: 'Its place in the log.' }) position!: number;
  @Field(() => Boolean, { description: 'True when the same request had been carried out before.' }) repeated!: boolean;
}
