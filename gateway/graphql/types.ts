import { Float, Int } from '@nestjs/graphql';
import { about, maybe, objectType } from './declare.js';
import { nodeType } from './relay.js';

// Money is a string of whole cents: GraphQL's Int has 32 bits, and a Float would round.

export const Account = nodeType('Account', 'An owner of agents.', {
  accountId: String,
  displayName: String,
  registeredAt: String,
});

export const Agent = nodeType('Agent', 'An agent: code that plays, under an owner and a name.', {
  agentId: String,
  ownerId: String,
  name: String,
  games: [String],
  runtime: String,
  version: Int,
  codeDigest: about(String, 'SHA-256 of the code.'),
  submittedAt: String,
  updatedAt: String,
});

export const AgentVersion = nodeType('AgentVersion', '', {
  agentId: String,
  version: Int,
  codeDigest: String,
  codeBytes: Int,
  publishedAt: String,
});

export const Seat = objectType('Seat', '', {
  agentId: String,
  accountId: String,
  version: Int,
  codeDigest: String,
  score: maybe(Float),
  payoutCents: maybe(String),
});

export const Turn = objectType('Turn', '', {
  turn: Int,
  seat: Int,
  action: about(String, 'The action as JSON.'),
  fuel: about(String, 'Deterministic compute spent on it.'),
});

export const Lease = objectType('Lease', 'A match in the hands of a runner.', {
  matchId: String,
  runnerId: String,
  attempt: Int,
  leaseUntil: about(String, 'When it is taken back, unless the runner says that it is at work.'),
});

export const Runner = nodeType('Runner', 'Plays matches, and signs for how they came out.', {
  runnerId: String,
  publicKey: about(String, 'Ed25519, in hexadecimal.'),
  status: about(String, 'registered or revoked.'),
  reason: about(String, 'Why it was revoked; empty while it is trusted.'),
  registeredAt: String,
  seenAt: about(String, 'When it last claimed, kept or reported a match.'),
  claimed: Int,
  played: Int,
});

export const Match = nodeType('Match', 'A match, from proposal to settlement.', {
  matchId: String,
  game: String,
  seed: maybe(String, 'Told when the match is over.'),
  status: about(String, 'proposed, ready, playing, settled or voided.'),
  reason: about(String, 'The rule that ended it, or what it waits for.'),
  detail: String,
  seats: [Seat],
  winner: maybe(Int, 'The winning seat; null for a draw.'),
  stakeCents: String,
  potCents: String,
  rakeCents: String,
  currency: String,
  turns: Int,
  attempts: Int,
  proposedAt: String,
  endedAt: maybe(String),
});

export const WaitingAgent = objectType('WaitingAgent', 'An agent that waits for an opponent.', {
  agentId: String,
  accountId: String,
  game: String,
  stakeCents: String,
  currency: String,
  reason: about(String, 'What it waits for.'),
});

export const Queue = objectType('Queue', 'What waits, and what for. Each match says its reason.', {
  proposed: about(Int, 'Waiting for stakes.'),
  ready: about(Int, 'Waiting for a runner.'),
  playing: about(Int, 'In the hands of a runner.'),
});

const Confidence = objectType('Confidence', 'Glicko-2: a rating, and how certain it is.', {
  rating: Float,
  deviation: about(Float, 'The rating deviation; it grows on days without a match.'),
  low: about(Float, 'The rating less two deviations.'),
  high: about(Float, 'The rating and two deviations.'),
  volatility: Float,
  provisional: about(Boolean, 'A deviation of 110 or more.'),
});

export const Standing = objectType('Standing', '', {
  rank: Int,
  season: String,
  agentId: String,
  rating: about(Float, 'Elo.'),
  confidence: Confidence,
  streak: about(Int, 'Wins in a row; losses as a negative number.'),
  bestStreak: about(Int, 'The most wins in a row.'),
  games: Int,
  wins: Int,
  draws: Int,
  losses: Int,
  provisional: about(Boolean, 'Fewer than 30 games.'),
});

const ratingChange = {
  season: String,
  position: about(String, 'Of the settlement in the log.'),
  games: Int,
  matchId: String,
  before: Float,
  after: Float,
  glicko: about(Float, 'Glicko-2 after the match.'),
  deviation: Float,
  volatility: Float,
  at: String,
};
export const RatingChange = objectType('RatingChange', '', ratingChange);

export const PastRating = objectType('PastRating', 'How an agent stood at a moment of the past.', {
  ...ratingChange,
  confidence: about(Confidence, 'As of the moment asked for.'),
});

export const HeadToHead = objectType('HeadToHead', 'How one agent did against another.', {
  agentId: String,
  opponentId: String,
  wins: Int,
  draws: Int,
  losses: Int,
});

export const Strength = objectType(
  'Strength',
  'Bradley-Terry strength by a hundred resamplings. All intervals hold at once, with 95 percent confidence.',
  {
    agentId: String,
    rating: about(Float, 'On the scale of Elo, with the mean of all at 1500.'),
    low: Float,
    high: Float,
  },
);

// Where the store gives byte offsets for positions, they pass 32 bits; none passes what a double holds exactly.
const POSITION = 'Of the log.';

export const Build = objectType('Build', '', {
  phase: about(String, 'building or swapping.'),
  position: about(Float, POSITION),
  total: about(Float, 'The end of the log, as a position.'),
  eventsPerSecond: Int,
  secondsLeft: Int,
});

export const Projection = nodeType('Projection', 'A view of the log, and how far it has come.', {
  view: String,
  version: about(Int, 'Of the code.'),
  servingVersion: maybe(Int, 'Of the rows that serve.'),
  position: about(Float, POSITION),
  lagEvents: about(Float, 'How many positions behind: events, or bytes of EventStoreDB’s log.'),
  deadLetters: Int,
  build: maybe(Build, 'What is being built beside it.'),
});

export const DeadLetter = objectType('DeadLetter', 'An event that a view could not take in.', {
  group: String,
  position: about(Float, POSITION),
  eventId: String,
  type: String,
  version: Int,
  code: String,
  message: String,
});

export const BusLetter = objectType('BusLetter', 'An event that a policy gave up on, with the reason.', {
  group: String,
  position: Float,
  eventId: String,
  attempts: Int,
  code: String,
  message: String,
});

export const Replayed = objectType('Replayed', 'What became of dead letters that were handed out again.', {
  done: [BusLetter],
  left: about([BusLetter], 'What failed again, with the new reason.'),
});

export const Balance = objectType('Balance', 'An account of the ledger, such as player:<name>, escrow or house:rake.', {
  account: String,
  currency: String,
  balanceCents: String,
});

export const Posting = objectType('Posting', 'A line of the ledger. The lines of one position sum to zero.', {
  position: String,
  at: String,
  eventType: String,
  account: String,
  currency: String,
  amountCents: String,
  matchId: maybe(String),
});

export const TrialBalance = objectType('TrialBalance', 'All accounts of a currency. They sum to zero.', {
  currency: String,
  accounts: about([Balance], 'The chart of accounts; all players together are one line.'),
  sumCents: String,
});

const Purse = objectType('Purse', 'One currency of a wallet.', {
  currency: String,
  availableCents: about(String, 'What can be staked or spent.'),
  withdrawableCents: about(String, 'What could be withdrawn at this moment.'),
  heldCents: String,
  owedCents: String,
});

const Budget = objectType('Budget', 'Caps on what is held for play and runs, and how much of them is used.', {
  currency: String,
  agentId: maybe(String, 'Of one agent; of the whole wallet without it.'),
  perRunCents: maybe(String),
  perDayCents: maybe(String),
  totalCents: maybe(String),
  spentCents: about(String, 'Since it was set.'),
  spentTodayCents: about(String, 'Today, in UTC.'),
});

export const Wallet = objectType('Wallet', 'A wallet, folded from its own events.', {
  accountId: String,
  purses: [Purse],
  frozen: about(Boolean, 'Withdrawals are stopped.'),
  budgets: [Budget],
});

export const SeatCost = objectType('SeatCost', 'What a seat would cost, and whether it could be paid for right now.', {
  agentId: String,
  accountId: String,
  stakeCents: String,
  currency: String,
  computeCents: about(String, 'In COMPUTE.'),
  refusal: maybe(String, 'Why it would be refused; null if it would not.'),
});

export const IssuedApiKey = objectType('IssuedApiKey', '', {
  keyId: String,
  key: about(String, 'Shown this once, and kept nowhere.'),
});
