import { Inject, type Type } from '@nestjs/common';
import {
  Args,
  Extensions,
  Field,
  Float,
  Int,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
} from '@nestjs/graphql';
import type { ChartName } from '../../projections/analytics/charts.js';
import { AgonError } from '../../services/kernel/index.js';
import { type GatewayPorts, PORTS } from '../ports.js';
import { addMethod } from './mutation.js';

// Sums that may pass 32 bits, fuel and money above all, are strings of digits.

@ObjectType()
export class MatchesOfDay {
  @Field(() => String) day!: string;
  @Field(() => String) game!: string;
  @Field(() => Int) settled!: number;
  @Field(() => Int) voided!: number;
  @Field(() => Int, { description: 'Taken back on this day, whenever they were settled.' }) reversed!: number;
}

const REVERSALS = 'A match that was reversed counts back on the day of its reversal.';

@ObjectType({ description: REVERSALS })
export class AgentPerformance {
  @Field(() => String) agentId!: string;
  @Field(() => String) game!: string;
  @Field(() => Int) played!: number;
  @Field(() => Int) won!: number;
  @Field(() => Int) drawn!: number;
  @Field(() => Int) lost!: number;
  @Field(() => Float) meanScore!: number;
  @Field(() => String, { description: 'Payouts less stakes.' }) netCents!: string;
}

@ObjectType({ description: 'Fuel is what deterministic sandboxes count; time is there where turns are timed.' })
export class TurnPercentiles {
  @Field(() => String) day!: string;
  @Field(() => Int) turns!: number;
  @Field(() => String) fuelP50!: string;
  @Field(() => String) fuelP90!: string;
  @Field(() => String) fuelP99!: string;
  @Field(() => Float) wallMsP50!: number;
  @Field(() => Float) wallMsP99!: number;
}

@ObjectType({ description: 'Wait: from ready to claimed. Play: from claimed to played.' })
export class MatchLatency {
  @Field(() => String) game!: string;
  @Field(() => Int) matches!: number;
  @Field(() => Float) waitMsP50!: number;
  @Field(() => Float) waitMsP90!: number;
  @Field(() => Float) waitMsP99!: number;
  @Field(() => Float) playMsP50!: number;
  @Field(() => Float) playMsP90!: number;
  @Field(() => Float) playMsP99!: number;
}

@ObjectType()
export class ResourceUse {
  @Field(() => String) day!: string;
  @Field(() => String) driver!: string;
  @Field(() => Int) seats!: number;
  @Field(() => String) fuel!: string;
  @Field(() => Float) cpuMs!: number;
  @Field(() => Float) wallMs!: number;
  @Field(() => Float) peakMemoryBytes!: number;
}

@ObjectType({ description: REVERSALS })
export class Revenue {
  @Field(() => String) day!: string;
  @Field(() => String) currency!: string;
  @Field(() => Int) matches!: number;
  @Field(() => String) potCents!: string;
  @Field(() => String) rakeCents!: string;
  @Field(() => String) paidCents!: string;
}

@ObjectType()
export class PromptProofs {
  @Field(() => String) day!: string;
  @Field(() => Int) proofs!: number;
  @Field(() => Int) agents!: number;
}

@ObjectType({ description: 'Of the agents submitted in this time, how many came how far in it.' })
export class SubmissionFunnel {
  @Field(() => Int) submitted!: number;
  @Field(() => Int) matched!: number;
  @Field(() => Int) played!: number;
  @Field(() => Int) won!: number;
}

@ObjectType({ description: "The dashboard's charts. They follow the log by a moment; readyz says by how much." })
export class Analytics {
  @Field(() => String) from!: string;
  @Field(() => String) to!: string;
}

const TIME = { type: () => String, nullable: true } as const;
/** A chart reads thousands of rows for each that it shows. */
const CHART = { cost: 300 };
const MONTH_MS = 30 * 24 * 3600 * 1000;

@Resolver(() => Analytics)
export class AnalyticsQueries {
  constructor(@Inject(PORTS) private readonly ports: GatewayPorts) {}

  @Query(() => Analytics, { description: 'From one ISO time to before another; the last thirty days when left out.' })
  analytics(@Args('from', TIME) from?: string, @Args('to', TIME) to?: string): Analytics {
    const end = to === undefined ? Date.parse(this.ports.clock()) + 1 : timeOf('to', to);
    const start = from === undefined ? end - MONTH_MS : timeOf('from', from);
    if (start >= end) throw new AgonError('QUERY.BAD_TIME', '"from" is not before "to".');
    return { from: new Date(start).toISOString(), to: new Date(end).toISOString() };
  }

  /** The rows of a chart. */
  chart(name: ChartName, { from, to }: Analytics): Promise<readonly object[]> {
    const plain = (time: string) => time.replace('T', ' ').replace('Z', '');
    return this.ports.analytics.chart(name, plain(from), plain(to));
  }
}

const CHARTS: Readonly<Record<ChartName, readonly [() => Type | [Type], string?]>> = {
  matchesPerDay: [() => [MatchesOfDay]],
  agentPerformance: [() => [AgentPerformance], 'The thousand that played most.'],
  turnPercentiles: [() => [TurnPercentiles]],
  matchLatency: [() => [MatchLatency]],
  resourceUse: [() => [ResourceUse]],
  revenue: [() => [Revenue]],
  promptProofs: [() => [PromptProofs]],
  submissionFunnel: [() => SubmissionFunnel],
};

for (const [name, [type, description]] of Object.entries(CHARTS)) {
  const value = async function (this: AnalyticsQueries, span: Analytics) {
    const rows = await this.chart(name as ChartName, span);
    return Array.isArray(type()) ? rows : rows[0];
  };
  addMethod(AnalyticsQueries, name, value, {
    method: [Extensions(CHART), ResolveField(type, description ? { description } : {})],
    parameters: [Parent()],
  });
}

function timeOf(name: string, text: string): number {
  const ms = /^\d{4}-/.test(text) ? Date.parse(text) : Number.NaN;
  const [earliest, latest] = [Date.UTC(1970, 0, 1), Date.UTC(2200, 0, 1)];
  if (ms >= earliest && ms <= latest) return ms;
  throw new AgonError('QUERY.BAD_TIME', `${name} is "${text}", which is not a time like 2026-01-31T00:00:00Z.`);
}
