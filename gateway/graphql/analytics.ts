import { Float, Int } from '@nestjs/graphql';
import type { ChartName } from '../../projections/analytics/charts.js';
import { AgonError } from '../../services/kernel/index.js';
import { about, fieldsOf, maybe, objectType, queriesOf, query } from './declare.js';

// Sums that may pass 32 bits, fuel and money above all, are strings of digits.

const MatchesOfDay = objectType('MatchesOfDay', '', {
  day: String,
  game: String,
  settled: Int,
  voided: Int,
  reversed: about(Int, 'Taken back on this day, whenever they were settled.'),
});

const REVERSALS = 'A match that was reversed counts back on the day of its reversal.';

const AgentPerformance = objectType('AgentPerformance', REVERSALS, {
  agentId: String,
  game: String,
  played: Int,
  won: Int,
  drawn: Int,
  lost: Int,
  meanScore: Float,
  netCents: about(String, 'Payouts less stakes.'),
});

const TurnPercentiles = objectType(
  'TurnPercentiles',
  'Fuel is what deterministic sandboxes count; time is there where turns are timed.',
  {
    day: String,
    turns: Int,
    fuelP50: String,
    fuelP90: String,
    fuelP99: String,
    wallMsP50: Float,
    wallMsP99: Float,
  },
);

const MatchLatency = objectType('MatchLatency', 'Wait: from ready to claimed. Play: from claimed to played.', {
  game: String,
  matches: Int,
  waitMsP50: Float,
  waitMsP90: Float,
  waitMsP99: Float,
  playMsP50: Float,
  playMsP90: Float,
  playMsP99: Float,
});

const ResourceUse = objectType('ResourceUse', '', {
  day: String,
  driver: String,
  seats: Int,
  fuel: String,
  cpuMs: Float,
  wallMs: Float,
  peakMemoryBytes: Float,
});

const Revenue = objectType('Revenue', REVERSALS, {
  day: String,
  currency: String,
  matches: Int,
  potCents: String,
  rakeCents: String,
  paidCents: String,
});

const PromptProofs = objectType('PromptProofs', '', {
  day: String,
  proofs: Int,
  agents: Int,
});

const SubmissionFunnel = objectType(
  'SubmissionFunnel',
  'Of the agents submitted in this time, how many came how far in it.',
  {
    submitted: Int,
    matched: Int,
    played: Int,
    won: Int,
  },
);

const Analytics = objectType(
  'Analytics',
  "The dashboard's charts. They follow the log by a moment; readyz says by how much.",
  {
    from: String,
    to: String,
  },
);

/** A chart reads thousands of rows for each that it shows. */
const CHART_COST = 300;
const MONTH_MS = 30 * 24 * 3600 * 1000;

const charts = {
  matchesPerDay: [MatchesOfDay],
  agentPerformance: about([AgentPerformance], 'The thousand that played most.'),
  turnPercentiles: [TurnPercentiles],
  matchLatency: [MatchLatency],
  resourceUse: [ResourceUse],
  revenue: [Revenue],
  promptProofs: [PromptProofs],
  submissionFunnel: SubmissionFunnel,
} as const satisfies Record<ChartName, unknown>;

export const analyticsResolvers = [
  queriesOf({
    analytics: query({
      type: about(Analytics, 'From one ISO time to before another; the last thirty days when left out.'),
      args: { from: maybe(String), to: maybe(String) },
      resolve: ({ ports, args: { from, to } }) => {
        const end = to === undefined ? Date.parse(ports.clock()) + 1 : timeOf('to', to);
        const start = from === undefined ? end - MONTH_MS : timeOf('from', from);
        if (start >= end) throw new AgonError('QUERY.BAD_TIME', '"from" is not before "to".');
        return { from: new Date(start).toISOString(), to: new Date(end).toISOString() };
      },
    }),
  }),

  fieldsOf(Analytics, (field) => {
    const fields = Object.entries(charts).map(([name, type]) => [
      name,
      field({
        type,
        cost: CHART_COST,
        resolve: async ({ ports, parent: { from, to } }) => {
          const rows = await ports.analytics.chart(name as ChartName, plain(from), plain(to));
          return type === SubmissionFunnel ? rows[0] : rows;
        },
      }),
    ]);
    return Object.fromEntries(fields);
  }),
];

const plain = (time: string) => time.replace('T', ' ').replace('Z', '');

function timeOf(name: string, text: string | null): number {
  const ms = text !== null && /^\d{4}-/.test(text) ? Date.parse(text) : Number.NaN;
  const [earliest, latest] = [Date.UTC(1970, 0, 1), Date.UTC(2200, 0, 1)];
  if (ms >= earliest && ms <= latest) return ms;
  throw new AgonError('QUERY.BAD_TIME', `${name} is "${text}", which is not a time like 2026-01-31T00:00:00Z.`);
}
