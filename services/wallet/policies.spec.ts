import { describe, expect, it } from 'vitest';
import { chain } from '../kernel/fixtures.js';
import { derivedId, type RecordedEvent, SYSTEM } from '../kernel/index.js';
import { allowed } from '../kernel/spec.js';
import { stakeHoldId, stakes } from './policies.js';

const matchId = '8f14e45f-ceea-467f-a8f3-0d1c3b2a1f00';
const terms = { matchId, game: 'tic-tac-toe', stakeCents: '500', currency: 'PLAY' };
const seats = [
  { agentId: 'ada.minimax', accountId: 'ada' },
  { agentId: 'bob.random', accountId: 'bob' },
];
const recorded = (type: string, data: object): RecordedEvent => ({
  ...(chain(`match-${matchId}`, 1)[0] as RecordedEvent),
  position: 3,
  type,
  data: { ...terms, seats, ...data },
});

const proposed = recorded('MatchProposed', { seed: 's', rakeBps: 1000 });
const settled = recorded('MatchSettled', {
  potCents: '1000',
  rakeCents: '100',
  seats: seats.map((seat, i) => ({ ...seat, score: 1 - i, payoutCents: i === 0 ? '900' : '0' })),
});
const voided = recorded('MatchVoided', { reason: 'operator', detail: '' });

describe('the policy of stakes', () => {
  const sent = (event: RecordedEvent) => stakes.react(event).map(({ type, data }) => ({ type, data }));

  it.each([
    [{ held: 'stake', seat: 1 }, `${matchId}:1`],
    [{ held: 'compute', seat: 1 }, `${matchId}:1:compute`],
    [{ held: 'bounty' }, `${matchId}:bounty`],
  ])('gives back what came too late for its match: %j', (what, holdId) => {
    const event = { ...voided, type: 'EscrowDeclined', data: { matchId, accountId: 'bob', ...what } };
    expect(sent(event)).toEqual([{ type: 'VoidHold', data: { accountId: 'bob', holdId } }]);
  });

  it('holds the stake of every seat when a match is proposed', () => {
    expect(sent(proposed)).toEqual(
      seats.map(({ accountId }, seat) => ({
        type: 'HoldFunds',
        data: {
          accountId,
          holdId: `${matchId}:${seat}`,
          amountCents: '500',
          currency: 'PLAY',
          purpose: { kind: 'match', matchId, seat },
        },
      })),
    );
  });

  it('posts every hold with its payout when the match is settled', () => {
    expect(sent(settled)).toEqual([
      { type: 'PostHold', data: { accountId: 'ada', holdId: stakeHoldId(matchId, 0), payoutCents: '900' } },
      { type: 'PostHold', data: { accountId: 'bob', holdId: stakeHoldId(matchId, 1), payoutCents: '0' } },
    ]);
  });

  it('voids every hold when the match is voided', () => {
    expect(sent(voided)).toEqual([
      { type: 'VoidHold', data: { accountId: 'ada', holdId: stakeHoldId(matchId, 0) } },
      { type: 'VoidHold', data: { accountId: 'bob', holdId: stakeHoldId(matchId, 1) } },
    ]);
  });

  it.each([proposed, settled, voided])('moves nothing for a match without a stake ($type)', (event) => {
    expect(stakes.react({ ...event, data: { ...(event.data as object), stakeCents: '0' } })).toEqual([]);
  });

  it.each([proposed, settled, voided])('answers a redelivered $type with the very same commands', (event) => {
    const [first, again] = [stakes.react(event), stakes.react(structuredClone(event))];
    expect(again).toEqual(first);
    expect(first.map((command) => command.meta.id)).toEqual([0, 1].map((i) => derivedId(event.id, 'wallet.stakes', i)));
  });

  const bounty = { bountyId: 'b1', sponsorId: 'eve', amountCents: '301' };
  const extras = { disputeWindowMs: 3_600_000, bounty, computeCents: '3' };
  const ids = (event: RecordedEvent) => stakes.react(event).map((command) => command.meta.id);

  it('holds stakes, compute and the bounty of a match that has them, each under an id of its own', () => {
    const event = recorded('MatchProposed', { seed: 's', rakeBps: 1000, ...extras });
    const hold = (accountId: string, holdId: string, amountCents: string, currency: string, purpose: object) => ({
      type: 'HoldFunds',
      data: { accountId, holdId, amountCents, currency, purpose },
    });
    expect(sent(event)).toEqual([
      ...seats.map(({ accountId, agentId }, seat) =>
        hold(accountId, `${matchId}:${seat}`, '500', 'PLAY', { kind: 'match', matchId, seat, agentId }),
      ),
      ...seats.map(({ accountId, agentId }, seat) =>
        hold(accountId, `${matchId}:${seat}:compute`, '3', 'COMPUTE', { kind: 'run', runId: matchId, agentId, seat }),
      ),
      hold('eve', `${matchId}:bounty`, '301', 'PLAY', { kind: 'bounty', bountyId: 'b1', matchId }),
    ]);
    expect(new Set(ids(event)).size).toBe(5);
    expect(ids(event).slice(0, 2)).toEqual(ids(proposed));
  });

  it('pays the bounty and uses up the compute when such a match is settled', () => {
    const withdrawableAt = '2026-03-03T00:00:00.000Z';
    const paid = { bounty: { ...bounty, remainderCents: '1' }, computeCents: '3', withdrawableAt };
    const winners = seats.map((seat, i) => ({
      ...seat,
      score: 1 - i,
      payoutCents: i === 0 ? '900' : '0',
      ...(i === 0 ? { bountyCents: '300' } : {}),
    }));
    const event = recorded('MatchSettled', { potCents: '1000', rakeCents: '100', seats: winners, ...paid });
    const post = (accountId: string, holdId: string, payoutCents: string, more = {}) => ({
      type: 'PostHold',
      data: { accountId, holdId, payoutCents, ...more },
    });
    expect(sent(event)).toEqual([
      post('ada', `${matchId}:0`, '900', { withdrawableAt }),
      post('ada', `${matchId}:0:compute`, '0'),
      {
        type: 'AwardBounty',
        data: {
          accountId: 'ada',
          amountCents: '300',
          currency: 'PLAY',
          bountyId: 'b1',
          matchId,
          seat: 0,
          withdrawableAt,
        },
      },
      post('bob', `${matchId}:1`, '0', { withdrawableAt }),
      post('bob', `${matchId}:1:compute`, '0'),
      post('eve', `${matchId}:bounty`, '1'),
    ]);
    expect(new Set(ids(event)).size).toBe(6);
    const reversed = recorded('MatchReversed', {
      potCents: '1000',
      rakeCents: '100',
      seats: winners,
      ...paid,
      reason: 'x',
    });
    const back = (accountId: string, stakeCents: string, payoutCents: string, purpose: object) => ({
      type: 'ReverseSettlement',
      data: { accountId, currency: 'PLAY', purpose, stakeCents, payoutCents },
    });
    expect(sent(reversed)).toEqual([
      back('ada', '500', '900', { kind: 'match', matchId, seat: 0 }),
      back('bob', '500', '0', { kind: 'match', matchId, seat: 1 }),
      back('ada', '0', '300', { kind: 'bounty', bountyId: 'b1', matchId }),
      back('eve', '301', '1', { kind: 'bounty', bountyId: 'b1', matchId }),
    ]);
    expect(new Set(ids(reversed)).size).toBe(4);
  });

  it('gives everything back when such a match is voided', () => {
    const event = recorded('MatchVoided', { reason: 'operator', detail: '', bounty, computeCents: '3' });
    const holds = stakes.react(event).map((command) => (command.data as { holdId: string }).holdId);
    const suffixes = [':0', ':1', ':0:compute', ':1:compute', ':bounty'];
    expect(holds).toEqual(suffixes.map((suffix) => `${matchId}${suffix}`));
  });

  it('holds two seats of one account apart', () => {
    const both = recorded('MatchProposed', { seats: seats.map((seat) => ({ ...seat, accountId: 'ada' })) });
    const holds = stakes.react(both).map((command) => (command.data as { holdId: string }).holdId);
    expect(new Set(holds).size).toBe(2);
  });

  it('listens to those events only, and may do what it sends', () => {
    expect(stakes.types).toEqual(['MatchProposed', 'MatchSettled', 'MatchVoided', 'MatchReversed', 'EscrowDeclined']);
    for (const command of [proposed, settled, voided].flatMap((event) => stakes.react(event))) {
      expect(command.meta.actor).toEqual(SYSTEM);
      expect(allowed(command)).toBe(true);
    }
  });
});
