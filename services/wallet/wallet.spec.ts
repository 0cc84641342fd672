import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { type Actor, fold, isAgonError, roles } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import { walletDecider } from './decider.js';
import { GrantCredits, HoldFunds, PostHold, VoidHold, type WalletEvent, wallet } from './index.js';

const given = specification(wallet);
const matchId = '8f14e45f-ceea-467f-a8f3-0d1c3b2a1f00';
const purpose = { kind: 'match', matchId, seat: 0 } as const;
const money = (amountCents: string, currency = 'PLAY') => ({ accountId: 'ada', amountCents, currency });
const meta = (actor?: Actor) => metaOf('c1', actor);

const grant = (amount: string, currency?: string, actor?: Actor) =>
  new GrantCredits({ ...money(amount, currency), reason: 'welcome' }, meta(actor));
const hold = (amount: string, holdId = 'h1', currency?: string, actor?: Actor) =>
  new HoldFunds({ ...money(amount, currency), holdId, purpose }, meta(actor));
const post = (payoutCents: string, holdId = 'h1', actor?: Actor) =>
  new PostHold({ accountId: 'ada', holdId, payoutCents }, meta(actor));
const release = (holdId = 'h1', actor?: Actor) => new VoidHold({ accountId: 'ada', holdId }, meta(actor));

type Of<Type> = Extract<WalletEvent, { type: Type }>;
const granted = (amount: string, currency?: string): Of<'CreditsGranted'> => ({
  type: 'CreditsGranted',
  data: { ...money(amount, currency), reason: 'welcome' },
});
const about = <Type extends string>(type: Type, amount: string, holdId = 'h1', currency?: string) => ({
  type,
  data: { ...money(amount, currency), holdId, purpose },
});
const held = (amount: string, holdId?: string, currency?: string) => about('FundsHeld', amount, holdId, currency);
const posted = (amount: string, holdId?: string) => about('HoldPosted', amount, holdId);
const voided = (amount: string, holdId?: string) => about('HoldVoided', amount, holdId);
const credited = (amount: string) => ({ type: 'FundsCredited', data: { ...money(amount), purpose } }) as const;
const refused = (amount: string, availableCents: string, currency?: string) => {
  const { data } = about('HoldRefused', amount, 'h1', currency);
  return { type: 'HoldRefused', data: { ...data, availableCents, reason: 'insufficient' } } as const;
};

describe('granting credits', () => {
  it('adds them', () => {
    given([])
      .when(grant('1000'))
      .then([granted('1000')]);
  });
});

describe('holding funds', () => {
  it('sets aside what is there', () => {
    given([granted('1000')])
      .when(hold('400'))
      .then([held('400')]);
  });

  it('may take everything', () => {
    given([granted('1000')])
      .when(hold('1000'))
      .then([held('1000')]);
  });

  it('records a refusal when there is too little, and says how much there is', () => {
    given([])
      .when(hold('1'))
      .then([refused('1', '0')]);
    given([granted('1000')])
      .when(hold('1001'))
      .then([refused('1001', '1000')]);
  });

  it('does not count what is held already', () => {
    given([granted('1000'), held('700', 'h0')])
      .when(hold('301'))
      .then([refused('301', '300')]);
    given([granted('1000'), held('700', 'h0')])
      .when(hold('300'))
      .then([held('300')]);
  });

  it('counts what came back, in full or as a payout', () => {
    given([granted('1000'), held('700', 'h0'), voided('700', 'h0')])
      .when(hold('1000'))
      .then([held('1000')]);
    given([granted('1000'), held('700', 'h0'), posted('700', 'h0'), credited('1330')])
      .when(hold('1630'))
      .then([held('1630')]);
  });

  it('does not count what was posted', () => {
    given([granted('1000'), held('700', 'h0'), posted('700', 'h0')])
      .when(hold('301'))
      .then([refused('301', '300')]);
  });

  it('keeps currencies apart', () => {
    given([granted('1000', 'USD')])
      .when(hold('1', 'h1', 'PLAY'))
      .then([refused('1', '0', 'PLAY')]);
    given([granted('1000', 'USD'), granted('5')])
      .when(hold('1000', 'h1', 'USD'))
      .then([held('1000', 'h1', 'USD')]);
  });

  it('adds amounts that are too large for a number exactly', () => {
    const large = '900719925474099301';
    given([granted(large), granted('1')])
      .when(hold('900719925474099302'))
      .then([held('900719925474099302')]);
    given([granted(large)])
      .when(hold('900719925474099302'))
      .then([refused('900719925474099302', large)]);
  });

  it('refuses a hold that is open under the same id', () => {
    given([granted('1000'), held('400')])
      .when(hold('400'))
      .thenRefused('WALLET.HOLD_EXISTS');
  });

  it('may try again after a refusal', () => {
    given([refused('400', '0'), granted('1000')])
      .when(hold('400'))
      .then([held('400')]);
  });
});

describe('posting a hold', () => {
  const history = [granted('1000'), held('400')];

  it('takes the money of a loser', () => {
    given(history)
      .when(post('0'))
      .then([posted('400')]);
  });

  it('takes the money of a winner and pays in the same breath', () => {
    given(history)
      .when(post('720'))
      .then([posted('400'), credited('720')]);
  });

  it.each([
    ['unknown', [granted('1000')]],
    ['posted already', [...history, posted('400')]],
    ['voided already', [...history, voided('400')]],
    ['refused', [refused('400', '0')]],
  ])('refuses a hold that is %s', (_what, events) => {
    given(events).when(post('720')).thenRefused('WALLET.UNKNOWN_HOLD');
  });
});

describe('voiding a hold', () => {
  it('gives the money back', () => {
    given([granted('1000'), held('400')])
      .when(release())
      .then([voided('400')]);
  });

  it.each([
    ['unknown', []],
    ['refused', [refused('400', '0')]],
    ['posted already', [granted('1000'), held('400'), posted('400')]],
    ['voided already', [granted('1000'), held('400'), voided('400')]],
  ])('does nothing for a hold that is %s', (_what, events) => {
    given(events).when(release()).then([]);
  });
});

describe('commands to a wallet', () => {
  it('meet on its stream', () => {
    const streams = [grant('1'), hold('1'), post('1'), release()].map((command) =>
      (command.constructor as typeof GrantCredits).spec.stream(command.data as never),
    );
    expect(new Set(streams)).toEqual(new Set(['wallet-ada']));
  });

  it.each<[string, () => unknown]>([
    ['a grant of nothing', () => grant('0')],
    ['a negative grant', () => grant('-1')],
    ['a fraction of a cent', () => grant('1.5')],
    ['a number', () => grant(1 as never)],
    ['an unknown way to write a currency', () => grant('1', 'play')],
    ['a hold of nothing', () => hold('0')],
    ['a hold without an id', () => hold('1', '')],
    ['a negative payout', () => post('-1')],
    ['an amount of 19 digits', () => grant('1'.repeat(19))],
  ])('do not understand %s', (_what, make) => {
    expect(make).toThrow(expect.objectContaining({ code: 'COMMAND.INVALID' }));
  });

  it.each(roles)('by %s: money moves only by staff and by the arena itself', (role) => {
    const actor = { id: 'ada', role };
    const commands = [
      grant('1', 'PLAY', actor),
      hold('1', 'h', 'PLAY', actor),
      post('1', 'h', actor),
      release('h', actor),
    ];
    const staff = ['operator', 'admin', 'system'].includes(role);
    expect(commands.map(allowed)).toEqual(commands.map(() => staff));
  });
});

describe('a wallet, whatever is asked of it', () => {
  const amount = fc.integer({ min: 1, max: 500 }).map(String);
  const holdId = fc.constantFrom('h1', 'h2', 'h3');
  const anything = fc.oneof(
    amount.map((cents) => grant(cents)),
    fc.tuple(amount, holdId).map(([cents, id]) => hold(cents, id)),
    fc.tuple(fc.constantFrom('0', '90', '900'), holdId).map(([cents, id]) => post(cents, id)),
    holdId.map((id) => release(id)),
  );

  it('never overdraws, ends every hold at most once, and loses no cent', () => {
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 60 }), (commands) => {
        let state = walletDecider.initial;
        const open = new Map<string, bigint>();
        let available = 0n;
        for (const command of commands) {
          let events: readonly WalletEvent[] = [];
          try {
            events = walletDecider.decide(command, state);
          } catch (error) {
            expect(isAgonError(error, 'WALLET.HOLD_EXISTS') || isAgonError(error, 'WALLET.UNKNOWN_HOLD')).toBe(true);
          }
          for (const event of events) {
            if (!('amountCents' in event.data)) continue;
            const cents = BigInt(event.data.amountCents);
            if (event.type === 'CreditsGranted' || event.type === 'FundsCredited') available += cents;
            if (event.type === 'HoldRefused') expect(cents).toBeGreaterThan(available);
            if (event.type === 'FundsHeld') {
              expect(open.has(event.data.holdId)).toBe(false);
              open.set(event.data.holdId, cents);
              available -= cents;
            }
            if (event.type === 'HoldPosted' || event.type === 'HoldVoided') {
              expect(open.get(event.data.holdId)).toBe(cents);
              open.delete(event.data.holdId);
              if (event.type === 'HoldVoided') available += cents;
            }
            expect(available).toBeGreaterThanOrEqual(0n);
          }
          state = fold(walletDecider, events, state);
          expect(state.purses.PLAY?.availableCents ?? 0n).toBe(available);
          expect(state.holds.map(({ holdId }) => holdId).sort()).toEqual([...open.keys()].sort());
        }
      }),
      { seed: 12, numRuns: 500 },
    );
  });
});
