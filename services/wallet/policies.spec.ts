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

  it('holds two seats of one account apart', () => {
    const both = recorded('MatchProposed', { seats: seats.map((seat) => ({ ...seat, accountId: 'ada' })) });
    const holds = stakes.react(both).map((command) => (command.data as { holdId: string }).holdId);
    expect(new Set(holds).size).toBe(2);
  });

  it('listens to those events only, and may do what it sends', () => {
    expect(stakes.types).toEqual(['MatchProposed', 'MatchSettled', 'MatchVoided']);
    for (const command of [proposed, settled, voided].flatMap((event) => stakes.react(event))) {
      expect(command.meta.actor).toEqual(SYSTEM);
      expect(allowed(command)).toBe(true);
    }
  });
});
