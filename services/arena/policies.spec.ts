import { describe, expect, it } from 'vitest';
import { chain } from '../kernel/fixtures.js';
import { derivedId, type RecordedEvent } from '../kernel/index.js';
import { allowed } from '../kernel/spec.js';
import { escrow } from './policies.js';

const matchId = '8f14e45f-ceea-467f-a8f3-0d1c3b2a1f00';
const recorded = (type: string, data: object): RecordedEvent => ({
  ...(chain('wallet-ada', 1)[0] as RecordedEvent),
  position: 3,
  type,
  data: {
    accountId: 'ada',
    amountCents: '500',
    currency: 'PLAY',
    holdId: `${matchId}:1`,
    purpose: { kind: 'match', matchId, seat: 1 },
    ...data,
  },
});
const held = recorded('FundsHeld', {});
const refused = recorded('HoldRefused', { availableCents: '120', reason: 'insufficient' });

describe('the policy of escrow', () => {
  const sent = (event: RecordedEvent) => escrow.react(event).map(({ type, data }) => ({ type, data }));

  it('tells the match that a stake is held', () => {
    expect(sent(held)).toEqual([{ type: 'EscrowStake', data: { matchId, seat: 1 } }]);
  });

  it('tells the match that a stake was refused, and why, and nobody what there is in the wallet', () => {
    const detail = 'ada cannot pay: the stake is 5.00 PLAY.';
    expect(sent(refused)).toEqual([{ type: 'RefuseStake', data: { matchId, seat: 1, detail } }]);
  });

  const about = (event: RecordedEvent, purpose: object, more: object = {}) =>
    sent({ ...event, data: { ...(event.data as object), purpose, ...more } });
  const run = { kind: 'run', runId: matchId, agentId: 'ada.bot', seat: 1 };
  const bounty = { kind: 'bounty', bountyId: 'b1', matchId };

  it('tells the match of its fees and of its bounty', () => {
    expect(about(held, run)).toEqual([{ type: 'EscrowCompute', data: { matchId, seat: 1 } }]);
    expect(about(held, bounty)).toEqual([{ type: 'EscrowBounty', data: { matchId } }]);
    const detail = (text: string) => expect.objectContaining({ data: expect.objectContaining({ detail: text }) });
    expect(about(refused, run)).toEqual([detail('ada cannot pay: this run costs 5.00 PLAY.')]);
    expect(about(refused, bounty)).toEqual([{ type: 'RefuseStake', data: { matchId, detail: expect.any(String) } }]);
    expect(about(refused, run, { reason: 'budget' })).toEqual([
      detail('The budget of ada does not allow 5.00 PLAY for this.'),
    ]);
    expect(about(refused, run, { reason: 'owed' })).toEqual([detail('ada cannot pay: this run costs 5.00 PLAY.')]);
  });

  it('leaves runs that are no matches to whoever asked for them', () => {
    const { seat: _seat, ...alone } = run;
    expect(about(held, alone)).toEqual([]);
  });

  it.each([held, refused])('does not care for what is no stake ($type)', (event) => {
    const purpose = { kind: 'other', note: 'a fee' };
    expect(escrow.react({ ...event, data: { ...(event.data as object), purpose } })).toEqual([]);
  });

  it.each([held, refused])('answers a redelivered $type with the very same command', (event) => {
    const [first, again] = [escrow.react(event), escrow.react(structuredClone(event))];
    expect(again).toEqual(first);
    expect(first.map((command) => command.meta.id)).toEqual([derivedId(event.id, 'arena.escrow', 0)]);
    expect(first.every(allowed)).toBe(true);
  });

  it('listens to those events only', () => {
    expect(escrow.types).toEqual(['FundsHeld', 'HoldRefused']);
  });
});
