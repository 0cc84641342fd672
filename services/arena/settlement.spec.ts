import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryEventStore } from '../adapters/store/memory.js';
import { metaOf } from '../kernel/fixtures.js';
import { type Command, createHandle, derivedId, Folds, SYSTEM } from '../kernel/index.js';
import { GrantCredits, purseOf, wallet } from '../wallet/index.js';
import {
  type ArenaEvent,
  arena,
  ClaimMatch,
  ExpireLease,
  FailAttempt,
  ProposeMatch,
  ReportMatch,
  ReverseMatch,
  VoidMatch,
} from './index.js';
import { settle, windowEnd } from './settlement.js';

const eight = (points: number[]) => points.map((each) => each / points.reduce((sum, other) => sum + other, 0));
const shares = [87n, 93n, 92n, 77n, 101n, 87n, 90n, 93n];
const sevenths = [103n, 103n, 103n, 103n, 103n, 103n, 102n];

/** What, stake, scores, rake in hundredths of a percent → rake, payouts. */
const table: readonly [string, bigint, number[], number, bigint, bigint[]][] = [
  ['the first seat wins', 500n, [1, 0], 1000, 100n, [900n, 0n]],
  ['the second seat wins', 500n, [0, 1], 1000, 100n, [0n, 900n]],
  ['the lowest rake', 500n, [1, 0], 500, 50n, [950n, 0n]],
  ['the highest rake', 500n, [1, 0], 1500, 150n, [850n, 0n]],
  ['a draw takes no rake', 500n, [0.5, 0.5], 1000, 0n, [500n, 500n]],
  ['a draw at the highest rake', 1n, [0.5, 0.5], 1500, 0n, [1n, 1n]],
  ['no stake', 0n, [1, 0], 1000, 0n, [0n, 0n]],
  ['no stake and a draw', 0n, [0.5, 0.5], 1000, 0n, [0n, 0n]],
  ['one cent each: the rake rounds down to nothing', 1n, [1, 0], 1000, 0n, [2n, 0n]],
  ['five cents each: exactly one cent of rake', 5n, [1, 0], 1000, 1n, [9n, 0n]],
  ['an odd pot: the rake rounds down', 99n, [1, 0], 1000, 19n, [179n, 0n]],
  ['a rake with a fraction', 333n, [1, 0], 777, 51n, [615n, 0n]],
  ['one cent below a whole rake', 999n, [1, 0], 500, 99n, [1899n, 0n]],
  ['a shared win, three to one', 500n, [0.75, 0.25], 1000, 100n, [675n, 225n]],
  ['a shared win with a cent left over', 5n, [0.75, 0.25], 1000, 1n, [7n, 2n]],
  ['a narrow win', 500n, [0.51, 0.49], 1000, 100n, [459n, 441n]],
  ['a win by one part in a million', 500n, [0.500001, 0.499999], 1000, 100n, [451n, 449n]],
  ['a difference below one part in a million is a draw', 500n, [0.50000001, 0.49999999], 1000, 0n, [500n, 500n]],
  ['three seats, one winner', 100n, [1, 0, 0], 1000, 30n, [270n, 0n, 0n]],
  ['three seats, two share', 100n, [0.5, 0, 0.5], 1000, 30n, [135n, 0n, 135n]],
  ['three seats, two share an odd prize: the lower seat gets the cent', 35n, [0.5, 0, 0.5], 1000, 10n, [48n, 0n, 47n]],
  ['three seats in order', 100n, [0.6, 0.3, 0.1], 1000, 30n, [162n, 81n, 27n]],
  ['three seats, the best one is the last and gets what is left', 33n, [0.2, 0.3, 0.5], 1000, 9n, [18n, 27n, 45n]],
  ['four seats, two cents left for two winners', 7n, [0.3, 0.3, 0.2, 0.2], 1500, 4n, [8n, 8n, 4n, 4n]],
  ['chips, 80 to 48 of 128', 1000n, [80 / 128, 48 / 128], 1000, 200n, [1125n, 675n]],
  ['chips, a lead that is smaller than the rake', 1000n, [66 / 128, 62 / 128], 1000, 200n, [929n, 871n]],
  ['points of eight seats', 100n, eight([470, 503, 495, 416, 515, 471, 488, 504]), 1000, 80n, shares],
  ['three seats, thirds that do not add up to one', 100n, [1 / 3, 1 / 3, 1 / 3], 1500, 0n, [100n, 100n, 100n]],
  ['eight seats, one at fault', 100n, [0, ...Array<number>(7).fill(1 / 7)], 1000, 80n, [0n, ...sevenths]],
  [
    'sixteen seats, one winner',
    10n,
    [1, ...Array<number>(15).fill(0)],
    1500,
    24n,
    [136n, ...Array<bigint>(15).fill(0n)],
  ],
  [
    'more than a number can hold',
    9_007_199_254_740_993n,
    [1, 0],
    1000,
    1_801_439_850_948_198n,
    [16_212_958_658_533_788n, 0n],
  ],
  ['a forfeit: the seat at fault has nothing', 250n, [0, 1], 500, 25n, [0n, 475n]],
  ['a forfeit of three: the other two share', 100n, [0, 0.5, 0.5], 500, 15n, [0n, 143n, 142n]],
  ['a forfeit of four, and one of the rest won', 100n, [0, 1, 0, 0], 1500, 60n, [0n, 340n, 0n, 0n]],
  ['a forfeit without a stake', 0n, [0, 1], 500, 0n, [0n, 0n]],
  ['the smallest rake on the smallest pot that shows it', 10n, [1, 0], 500, 1n, [19n, 0n]],
  ['one cent below it', 9n, [1, 0], 500, 0n, [18n, 0n]],
  ['the highest rake on a pot of two cents', 1n, [1, 0], 1500, 0n, [2n, 0n]],
  ['the highest rake on a pot of seven cents', 1n, [1, 0, 0, 0, 0, 0, 0], 1500, 1n, [6n, 0n, 0n, 0n, 0n, 0n, 0n]],
  ['a rake that ends just below a cent', 67n, [1, 0], 749, 10n, [124n, 0n]],
  ['a rake that ends just above a cent', 67n, [1, 0], 750, 10n, [124n, 0n]],
  ['a dollar against a dollar', 100n, [1, 0], 1000, 20n, [180n, 0n]],
  ['a thousand dollars', 100_000n, [0, 1], 800, 16_000n, [0n, 184_000n]],
  ['a third is a little less in parts per million', 150n, [2 / 3, 1 / 3], 1000, 30n, [181n, 89n]],
  ['two thirds and a third of an odd prize', 151n, [2 / 3, 1 / 3], 1000, 30n, [182n, 90n]],
  ['three seats, two cents left over for one winner', 10n, [0.34, 0.33, 0.33], 1000, 3n, [11n, 8n, 8n]],
  ['three seats, two ahead of one', 10n, [0.4, 0.4, 0.2], 1000, 3n, [11n, 11n, 5n]],
  ['four seats, a draw', 25n, [0.25, 0.25, 0.25, 0.25], 1500, 0n, [25n, 25n, 25n, 25n]],
  ['four seats, three share first place', 7n, [1 / 3, 1 / 3, 0, 1 / 3], 1000, 2n, [9n, 9n, 0n, 8n]],
  ['four seats in four places', 1_000n, [0.4, 0.3, 0.2, 0.1], 500, 200n, [1_520n, 1_140n, 760n, 380n]],
  ['two seats of one cent that share', 1n, [0.75, 0.25], 1500, 0n, [2n, 0n]],
  ['five seats of one cent, one winner', 1n, [0, 0, 1, 0, 0], 1500, 0n, [0n, 0n, 5n, 0n, 0n]],
  ['sixteen seats, a draw', 3n, Array<number>(16).fill(1 / 16), 1500, 0n, Array<bigint>(16).fill(3n)],
];

const thirds = [1 / 3, 1 / 3, 1 / 3, 0];

/** What, stake, scores, bounty → of the bounty for each seat, back to the sponsor. */
const bounties: readonly [string, bigint, number[], bigint, bigint[], bigint][] = [
  ['the winner takes it', 500n, [1, 0], 1_000n, [1_000n, 0n], 0n],
  ['the second seat wins', 500n, [0, 1], 1_000n, [0n, 1_000n], 0n],
  ['it is the only prize', 0n, [1, 0], 1_000n, [1_000n, 0n], 0n],
  ['of one cent', 0n, [0, 1], 1n, [0n, 1n], 0n],
  ['it goes back after a draw', 500n, [0.5, 0.5], 1_000n, [0n, 0n], 1_000n],
  ['the best takes all of it, whatever the others scored', 500n, [0.51, 0.49], 999n, [999n, 0n], 0n],
  ['two winners share', 500n, [0.5, 0.5, 0], 1_000n, [500n, 500n, 0n], 0n],
  ['two winners share an odd one, and a cent goes back', 500n, [0.5, 0.5, 0], 1_001n, [500n, 500n, 0n], 1n],
  ['three winners share, and two cents go back', 500n, thirds, 1_001n, [333n, 333n, 333n, 0n], 2n],
  ['more winners than cents', 0n, thirds, 2n, [0n, 0n, 0n, 0n], 2n],
  ['a forfeit gives it to those who stayed', 500n, [0, 0.5, 0.5], 10n, [0n, 5n, 5n], 0n],
  ['larger than a number can hold', 1n, [1, 0], 9_007_199_254_740_993n, [9_007_199_254_740_993n, 0n], 0n],
];

const matchId = derivedId('match');
const time = (minutes: number) => new Date(Date.parse('2026-03-01T12:00:00.000Z') + minutes * 60_000).toISOString();
const attempts = [1, 2, 3];

/** How a match goes on once its stakes were asked for; nothing is held yet where it says so. */
const ways = {
  played: (scores: number[]) => [claim(1), report(scores)],
  reversed: (scores: number[]) => [claim(1), report(scores), new ReverseMatch({ matchId, reason: 'r' }, metaOf('r'))],
  forfeited: (scores: number[]) => [claim(1), report(scores, scores.indexOf(0))],
  waiting: () => [],
  'voided when ready': () => [callOff()],
  'voided before anything was held': () => [callOff()],
  'voided when claimed': () => [claim(1), callOff()],
  'voided after a failed attempt': () => [claim(1), fail(1), callOff()],
  'failed three times': () => attempts.flatMap((attempt) => [claim(attempt), fail(attempt)]),
  'abandoned three times': () => attempts.flatMap((attempt) => [claim(attempt), expire(attempt)]),
} satisfies Record<string, (scores: number[]) => Command[]>;
const held = { runnerId: 'runner-1', matchId };
const claim = (n: number) =>
  new ClaimMatch({ ...held, leaseMs: 60_000, table: false }, metaOf(`c${n}`, SYSTEM, time(10 * n)));
const fail = (attempt: number) => new FailAttempt({ ...held, attempt, reason: 'died' }, metaOf(`f${attempt}`, SYSTEM));
const expire = (n: number) => new ExpireLease({ ...held, attempt: n }, metaOf(`e${n}`, SYSTEM, time(10 * n + 5)));
const callOff = () => new VoidMatch({ matchId, detail: 'by hand' }, metaOf('v'));
const report = (scores: number[], seatAtFault: number | null = null) => {
  const outcome = { winner: null, scores, reason: 'line', detail: '', seatAtFault };
  const execution = { driver: 'wasm', gameVersion: 1, limits: {}, usage: [] };
  return new ReportMatch({ ...held, attempt: 1, turns: [], outcome, execution, signed: null }, metaOf('p', SYSTEM));
};

interface Bout {
  readonly stake?: string;
  readonly scores?: number[];
  readonly bounty?: string;
  readonly compute?: string;
  /** What everybody has to begin with, in cents and in credits; 1,000 of each when it is left out. */
  readonly purses?: number[];
  readonly credits?: number[];
}

/** What, how it goes, → its end, what everybody has in the end (the sponsor last), and what is left of their credits. */
const ends: readonly [string, keyof typeof ways, Bout, string, number[], number[]?][] = [
  ['a win', 'played', {}, 'MatchSettled', [1_080, 900, 1_000]],
  ['a draw', 'played', { scores: [0.5, 0.5] }, 'MatchSettled', [1_000, 1_000, 1_000]],
  ['a forfeit', 'forfeited', { scores: [0, 1] }, 'MatchSettled', [900, 1_080, 1_000]],
  ['a forfeit of three', 'forfeited', { scores: [0.5, 0, 0.5] }, 'MatchSettled', [1_035, 900, 1_035, 1_000]],
  ['no stake', 'played', { stake: '0' }, 'MatchSettled', [1_000, 1_000, 1_000]],
  ['a bounty', 'played', { bounty: '50' }, 'MatchSettled', [1_130, 900, 950]],
  ['a bounty alone', 'played', { stake: '0', bounty: '50' }, 'MatchSettled', [1_050, 1_000, 950]],
  ['a drawn bounty', 'played', { bounty: '50', scores: [0.5, 0.5] }, 'MatchSettled', [1_000, 1_000, 1_000]],
  ['a fee', 'played', { compute: '7' }, 'MatchSettled', [1_080, 900, 1_000], [993, 993, 1_000]],
  ['all of it staked', 'played', { stake: '1000' }, 'MatchSettled', [1_800, 0, 1_000]],
  ['a win', 'reversed', {}, 'MatchReversed', [1_000, 1_000, 1_000]],
  ['a draw', 'reversed', { scores: [0.5, 0.5] }, 'MatchReversed', [1_000, 1_000, 1_000]],
  ['a shared win', 'reversed', { scores: [0.75, 0.25] }, 'MatchReversed', [1_000, 1_000, 1_000]],
  ['three seats', 'reversed', { stake: '35', scores: [0.5, 0, 0.5] }, 'MatchReversed', [1_000, 1_000, 1_000, 1_000]],
  ['no stake', 'reversed', { stake: '0' }, 'MatchReversed', [1_000, 1_000, 1_000]],
  ['a bounty', 'reversed', { bounty: '51', scores: [0.5, 0.5, 0] }, 'MatchReversed', [1_000, 1_000, 1_000, 1_000]],
  [
    'a fee: what was used stays used',
    'reversed',
    { compute: '7' },
    'MatchReversed',
    [1_000, 1_000, 1_000],
    [993, 993, 1_000],
  ],
  ['everything held', 'voided when ready', { bounty: '50', compute: '7' }, 'MatchVoided', [1_000, 1_000, 1_000]],
  ['nothing held', 'voided before anything was held', { bounty: '50' }, 'MatchVoided', [1_000, 1_000, 1_000]],
  ['no stake', 'voided when ready', { stake: '0' }, 'MatchVoided', [1_000, 1_000, 1_000]],
  ['under way', 'voided when claimed', { bounty: '50', compute: '7' }, 'MatchVoided', [1_000, 1_000, 1_000]],
  ['to be played again', 'voided after a failed attempt', {}, 'MatchVoided', [1_000, 1_000, 1_000]],
  ['no attempt ended', 'failed three times', { bounty: '50', compute: '7' }, 'MatchVoided', [1_000, 1_000, 1_000]],
  ['no lease was kept', 'abandoned three times', {}, 'MatchVoided', [1_000, 1_000, 1_000]],
  ['the first cannot pay', 'waiting', { purses: [99] }, 'MatchVoided', [99, 1_000, 1_000]],
  ['the last cannot pay', 'waiting', { purses: [1_000, 99] }, 'MatchVoided', [1_000, 99, 1_000]],
  ['nobody can pay', 'waiting', { purses: [99, 99] }, 'MatchVoided', [99, 99, 1_000]],
  [
    'the sponsor cannot pay',
    'waiting',
    { bounty: '50', purses: [1_000, 1_000, 49] },
    'MatchVoided',
    [1_000, 1_000, 49],
  ],
  [
    'the fee cannot be paid',
    'waiting',
    { compute: '7', credits: [1_000, 6] },
    'MatchVoided',
    [1_000, 1_000, 1_000],
    [1_000, 6, 1_000],
  ],
];

/** Plays it through both contexts, which know each other by their events, and looks into every purse. */
async function playedOut(way: keyof typeof ways, bout: Bout) {
  const { stake = '100', scores = [1, 0], bounty, compute, purses = [], credits = [] } = bout;
  const store = new MemoryEventStore();
  const handle = createHandle({ store });
  const send = (command: Command) =>
    handle(wallet.commands.some(({ spec }) => spec.type === command.type) ? wallet : arena, command);
  let position = 0;
  const reacted = async () => {
    for (; position < (await store.lastPosition()); position += 1) {
      for (const event of await store.readAll({ after: position, limit: 1 })) {
        for (const policy of [...(wallet.policies ?? []), ...(arena.policies ?? [])]) {
          if (policy.types.includes(event.type)) for (const command of policy.react(event)) await send(command);
        }
      }
    }
  };
  const accounts = [...scores.map((_, seat) => `player-${seat}`), 'sponsor'];
  for (const [i, accountId] of accounts.entries()) {
    const has = { USD: purses[i] ?? 1_000, COMPUTE: credits[i] ?? 1_000 };
    for (const [currency, cents] of Object.entries(has)) {
      const grant = { accountId, amountCents: `${cents}`, currency, reason: 'test' };
      await send(new GrantCredits(grant, metaOf(`${accountId} ${currency}`)));
    }
  }
  const seats = accounts.slice(0, -1).map((accountId) => ({
    agentId: `${accountId}.bot`,
    accountId,
    version: 1,
    codeDigest: 'a'.repeat(64),
    runtime: 'javascript' as const,
  }));
  const terms = { matchId, game: 'g', seed: 's', stakeCents: stake, currency: 'USD', seats, rakeBps: 1000 };
  const extras = {
    ...(bounty ? { bounty: { bountyId: 'b', sponsorId: 'sponsor', amountCents: bounty } } : {}),
    ...(compute ? { computeCents: compute } : {}),
  };
  await send(new ProposeMatch({ ...terms, ...extras }, metaOf('propose')));
  if (way !== 'voided before anything was held') await reacted();
  for (const command of ways[way](scores)) await send(command);
  await reacted();
  const { load } = new Folds({ store });
  const states = await Promise.all(accounts.map(async (id) => (await load(wallet, id, 'tail')).state));
  const match = (await store.readStream(`match-${matchId}`)) as unknown as ArenaEvent[];
  const has = (currency: string) => states.map((state) => Number(purseOf(state, currency).availableCents));
  return { match, open: states.flatMap(({ holds }) => holds), usd: has('USD'), compute: has('COMPUTE') };
}

describe('settling a match', () => {
  it.each(ends)('to the end of it: %s, %s', async (_what, way, bout, end, usd, compute) => {
    const found = await playedOut(way, bout);
    const all = usd.map(() => 1_000);
    // Stakes that come too late are declined after the end.
    const last = found.match.findLast(({ type }) => type !== 'EscrowDeclined')?.type;
    expect({ end: last, usd: found.usd, compute: found.compute }).toEqual({
      end,
      usd,
      compute: compute ?? all,
    });
    expect(found.open).toEqual([]);
    const rake = found.match.find(({ type }) => type === 'MatchSettled')?.data as { rakeCents?: string } | undefined;
    const kept = end === 'MatchSettled' ? Number(rake?.rakeCents) : 0;
    const before = (bout.purses ?? []).reduce((sum, cents) => sum + cents - 1_000, usd.length * 1_000);
    expect(found.usd.reduce((sum, cents) => sum + cents, kept)).toBe(before);
  });

  it.each(table)('%s', (_what, stakeCents, scores, rakeBps, rakeCents, payoutsCents) => {
    const potCents = stakeCents * BigInt(scores.length);
    const bountiesCents = scores.map(() => 0n);
    const paid = { potCents, rakeCents, payoutsCents, bountiesCents, remainderCents: 0n };
    expect(settle({ stakeCents, scores, rakeBps })).toEqual(paid);
  });

  it.each(bounties)('with a bounty: %s', (_what, stakeCents, scores, bountyCents, bountiesCents, remainderCents) => {
    const without = settle({ stakeCents, scores, rakeBps: 1000 });
    const paid = settle({ stakeCents, scores, rakeBps: 1000, bountyCents });
    expect(paid).toEqual({ ...without, bountiesCents, remainderCents });
  });

  it.each([
    ['to the hour', '2026-03-01T12:00:00.000Z', 3_600_000, '2026-03-01T13:00:00.000Z'],
    ['a millisecond later', '2026-03-01T12:00:00.001Z', 3_600_000, '2026-03-01T14:00:00.000Z'],
    ['over the end of a year', '2026-12-31T23:59:59.999Z', 172_800_000, '2027-01-03T00:00:00.000Z'],
  ])('rounds the end of the dispute window up to a full hour: %s', (_what, at, windowMs, end) => {
    expect(windowEnd(at, windowMs)).toBe(end);
  });

  it.each([0, 499, 1501, 10_000, -1000, 1000.5, Number.NaN])('refuses a rake of %d', (rakeBps) => {
    expect(() => settle({ stakeCents: 1n, scores: [1, 0], rakeBps })).toThrow(
      expect.objectContaining({ code: 'ARENA.BAD_RAKE' }),
    );
  });

  it('divides any pot to the last cent, and takes from nobody', () => {
    const millionths = (score: number) => Math.round(score * 1_000_000);
    const score = fc.oneof(fc.constantFrom(0, 0.5, 1), fc.double({ min: 0, max: 1, noNaN: true }));
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 10n ** 16n }),
        fc.array(score, { minLength: 2, maxLength: 16 }),
        fc.integer({ min: 500, max: 1500 }),
        fc.bigInt({ min: 0n, max: 10n ** 16n }),
        (stakeCents, scores, rakeBps, bountyCents) => {
          const settlement = settle({ stakeCents, scores, rakeBps, bountyCents });
          const { potCents, rakeCents, payoutsCents, bountiesCents, remainderCents } = settlement;
          const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);
          expect(sum(payoutsCents) + rakeCents).toBe(potCents);
          expect(sum(payoutsCents) + sum(bountiesCents) + rakeCents + remainderCents).toBe(potCents + bountyCents);
          expect([remainderCents, ...bountiesCents].every((cents) => cents >= 0n)).toBe(true);
          expect(potCents).toBe(stakeCents * BigInt(scores.length));
          expect(rakeCents * 10_000n <= potCents * BigInt(rakeBps)).toBe(true);
          for (const [seat, payout] of payoutsCents.entries()) {
            expect(payout).toBeGreaterThanOrEqual(0n);
            if (rakeCents > 0n && scores[seat] === 0) expect(payout).toBe(0n);
          }
          for (const [a, higher] of scores.entries()) {
            for (const [b, lower] of scores.entries()) {
              if (millionths(higher) > millionths(lower))
                expect(payoutsCents[a]).toBeGreaterThanOrEqual(payoutsCents[b] ?? 0n);
            }
          }
        },
      ),
      { seed: 13, numRuns: 1_000 },
    );
  });
});
