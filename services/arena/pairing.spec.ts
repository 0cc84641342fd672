import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pairUp, type Ticket } from './pairing.js';

const ticket = (ticketId: string, change: Partial<Ticket> = {}): Ticket => ({
  ticketId,
  agentId: `${ticketId}.bot`,
  accountId: ticketId,
  game: 'chess',
  stakeCents: '0',
  currency: 'PLAY',
  houseFromMs: undefined,
  ...change,
});
const idsOf = (tickets: readonly Ticket[], nowMs = 0) =>
  pairUp(tickets, nowMs).map((each) =>
    each.kind === 'pair' ? each.tickets.map(({ ticketId }) => ticketId).join('-') : `${each.ticket.ticketId}-house`,
  );

describe('who plays whom', () => {
  it('is first come, first served', () => {
    expect(idsOf([ticket('a'), ticket('b'), ticket('c'), ticket('d'), ticket('e')])).toEqual(['a-b', 'c-d']);
  });

  it.each<[string, Partial<Ticket>]>([
    ['another game', { game: 'go' }],
    ['another stake', { stakeCents: '5' }],
    ['another currency', { currency: 'USD' }],
    ['the same owner', { accountId: 'a' }],
  ])('is not somebody with %s', (_what, change) => {
    expect(idsOf([ticket('a'), ticket('b', change)])).toEqual([]);
    expect(idsOf([ticket('a'), ticket('b', change), ticket('c')])).toEqual(['a-c']);
  });

  it('is the house when nobody else came in time', () => {
    const patient = ticket('a', { houseFromMs: 1_000 });
    expect(idsOf([patient], 999)).toEqual([]);
    expect(idsOf([patient], 1_000)).toEqual(['a-house']);
    expect(idsOf([patient, ticket('b')], 1_000)).toEqual(['a-b']);
  });

  it('is never the same owner, and nobody twice, whoever waits', () => {
    const few = fc.constantFrom('a', 'b', 'c');
    const any = fc.record({
      accountId: few,
      game: few,
      stakeCents: few,
      houseFromMs: fc.constantFrom(undefined, 0, 9),
    });
    fc.assert(
      fc.property(fc.array(any, { maxLength: 12 }), (drawn) => {
        const tickets = drawn.map((each, i) => ticket(`t${i}`, each));
        const used = pairUp(tickets, 5).flatMap((each) => {
          if (each.kind === 'house') return [each.ticket];
          const [one, other] = each.tickets;
          expect(one.accountId).not.toBe(other.accountId);
          expect([one.game, one.stakeCents]).toEqual([other.game, other.stakeCents]);
          return [one, other];
        });
        expect(new Set(used).size).toBe(used.length);
      }),
    );
  });
});
