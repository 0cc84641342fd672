import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { derivedId, fold } from '../kernel/index.js';
import { type WalletState, walletDecider } from './decider.js';
import { DepositFunds, GrantCredits, HoldFunds, PostHold, pursesOf, ReverseSettlement } from './index.js';
import { LOSSES_MAX } from './losses.js';

const accountId = 'ada';
const currency = 'USD';
const LATER = '2026-03-08T12:00:00.000Z';
const meta = metaOf('c1');
type Sent = Parameters<typeof walletDecider.decide>[0];

const followedBy = (state: WalletState, ...commands: Sent[]) =>
  commands.reduce((now, command) => fold(walletDecider, walletDecider.decide(command, now), now), state);
const wallet = (...commands: Sent[]) => followedBy(walletDecider.initial, ...commands);
const grant = (amountCents: string) => new GrantCredits({ accountId, amountCents, currency, reason: 'test' }, meta);
const deposit = (amountCents: string, withdrawableAt: string) =>
  new DepositFunds(
    { accountId, amountCents, currency, depositId: `${amountCents}-${withdrawableAt}`, withdrawableAt },
    meta,
  );

const purposeOf = (match: number) => ({ kind: 'match' as const, matchId: derivedId('match', match), seat: 0 });
/** A match that took so much and paid so much. */
const played = (match: number, amountCents: string, payoutCents = '0') => [
  new HoldFunds({ accountId, amountCents, currency, holdId: `h${match}`, purpose: purposeOf(match) }, meta),
  new PostHold({ accountId, holdId: `h${match}`, payoutCents }, meta),
];
const reversed = (match: number, stakeCents: string, payoutCents = '0') =>
  new ReverseSettlement({ accountId, currency, purpose: purposeOf(match), stakeCents, payoutCents }, meta);
const withdrawable = (state: WalletState, at = meta.time) => pursesOf(state, at)[0]?.withdrawableCents;

describe('a stake that a reversal gives back', () => {
  it('was a grant, and never leaves', () => {
    const state = wallet(grant('500'), ...played(1, '500'), reversed(1, '500'));
    expect(state.purses.USD?.availableCents).toBe(500n);
    expect(withdrawable(state, '2999-01-01T00:00:00.000Z')).toBe(0n);
  });

  it('was a deposit that had not cleared, and clears when it would have', () => {
    const state = wallet(deposit('500', LATER), ...played(1, '500'), reversed(1, '500'));
    expect(withdrawable(state)).toBe(0n);
    expect(withdrawable(state, LATER)).toBe(500n);
  });

  it('was free to leave, and is again', () => {
    const state = wallet(grant('100'), deposit('500', meta.time), ...played(1, '100'), ...played(2, '500'));
    expect(withdrawable(followedBy(state, reversed(2, '500')))).toBe(500n);
    expect(withdrawable(followedBy(state, reversed(2, '500'), reversed(1, '100')))).toBe(500n);
  });

  it('is as locked as what was lost of it, when a part was paid back', () => {
    // 300 of the stake were granted and come back first; the 100 that were lost could leave.
    const state = wallet(grant('300'), deposit('200', meta.time), ...played(1, '500', '400'));
    expect(withdrawable(state)).toBe(100n);
    expect(withdrawable(followedBy(state, reversed(1, '500', '400')))).toBe(200n);
    // Here all that came back was granted, and so was some of what was lost.
    const other = wallet(
      grant('300'),
      deposit('200', meta.time),
      ...played(1, '500', '250'),
      reversed(1, '500', '250'),
    );
    expect(withdrawable(other)).toBe(200n);
  });

  it('is a sponsor’s, whose bounty was won by somebody', () => {
    const purpose = { kind: 'bounty', bountyId: 'b', matchId: derivedId('match') } as const;
    const state = wallet(
      grant('500'),
      new HoldFunds({ accountId, amountCents: '500', currency, holdId: 'b', purpose }, meta),
      new PostHold({ accountId, holdId: 'b', payoutCents: '1' }, meta),
      new ReverseSettlement({ accountId, currency, purpose, stakeCents: '500', payoutCents: '1' }, meta),
    );
    expect(state.purses.USD?.availableCents).toBe(500n);
    expect(withdrawable(state)).toBe(0n);
  });

  it('is too locked rather than too free, when its match is too long ago to be remembered', () => {
    const lost = Array.from({ length: LOSSES_MAX + 10 }, (_, i) => played(i, '1')).flat();
    const state = wallet(grant(`${LOSSES_MAX + 10}`), ...lost);
    expect(state.losses.recent).toHaveLength(LOSSES_MAX);
    expect(withdrawable(followedBy(state, reversed(0, '1'), reversed(LOSSES_MAX, '1')))).toBe(0n);
  });

  it('never makes more free to leave than was, whatever is lost and reversed', () => {
    const step = fc.record({
      stake: fc.integer({ min: 1, max: 300 }),
      paid: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 8 }),
        fc.infiniteStream(fc.boolean()),
        fc.integer({ min: 0, max: 400 }),
        (matches, isReversed, freeCents) => {
          let state = wallet(
            grant('200'),
            deposit('300', LATER),
            ...(freeCents ? [deposit(`${freeCents}`, meta.time)] : []),
          );
          const given: (() => void)[] = [];
          for (const [match, { stake, paid }] of matches.entries()) {
            const [stakeCents, payoutCents] = [`${stake}`, `${Math.floor(stake * paid)}`];
            if ((state.purses.USD?.availableCents ?? 0n) < BigInt(stake)) continue;
            state = followedBy(state, ...played(match, stakeCents, payoutCents));
            given.push(() => {
              state = followedBy(state, reversed(match, stakeCents, payoutCents));
            });
            if (isReversed.next().value) given.pop()?.();
            expect(withdrawable(state)).toBeLessThanOrEqual(BigInt(freeCents));
          }
          for (const reverse of given) reverse();
          // Everything is back, and is what it was.
          expect(withdrawable(state)).toBe(BigInt(freeCents));
          expect(withdrawable(state, LATER)).toBe(BigInt(freeCents) + 300n);
          expect(state.losses.recent).toEqual([]);
        },
      ),
      { numRuns: 500 },
    );
  });
});
