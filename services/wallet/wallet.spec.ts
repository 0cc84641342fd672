import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import { type Actor, fold, isAgonError, roles } from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import { walletDecider } from './decider.js';
import {
  AwardBounty,
  BuyCredits,
  ClawBackFunds,
  DepositFunds,
  ExpireHolds,
  FreezeWallet,
  GrantCredits,
  HoldFunds,
  PostHold,
  ReverseSettlement,
  SetBudget,
  spentOn,
  UnfreezeWallet,
  VoidHold,
  type WalletEvent,
  wallet,
} from './index.js';

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

describe('buying credits', () => {
  const paid = { amountCents: '500', currency: 'USD' };
  const data = { accountId: 'ada', packId: 'small', creditCents: '100000', paid };
  const buy = (actor?: Actor) => new BuyCredits(data, meta(actor));
  const bought: Of<'CreditsBought'> = { type: 'CreditsBought', data };
  const deposited = (amountCents: string): Of<'FundsDeposited'> => ({
    type: 'FundsDeposited',
    data: { ...money(amountCents, 'USD'), depositId: 'd1' },
  });

  it('takes the price and gives the credits, if the price is there', () => {
    given([deposited('500')])
      .when(buy())
      .then([bought]);
    given([deposited('499')])
      .when(buy())
      .thenRefused('WALLET.INSUFFICIENT_FUNDS');
    given([deposited('900'), bought])
      .when(buy())
      .thenRefused('WALLET.INSUFFICIENT_FUNDS');
    const { purses } = fold(walletDecider, [deposited('700'), bought]);
    expect(purses).toMatchObject({ USD: { availableCents: 200n }, COMPUTE: { availableCents: 100_000n } });
  });

  it('is for the owner, with money, and not with debts', () => {
    const taken: Of<'FundsClawedBack'> = {
      type: 'FundsClawedBack',
      data: { ...money('900', 'USD'), depositId: 'd1', clawBackId: 'c', reason: 'refund', owedCents: '100' },
    };
    given([deposited('800'), { ...taken, data: { ...taken.data, amountCents: '100' } }])
      .when(buy())
      .thenRefused('WALLET.OWED');
    given([granted('1000')])
      .when(new BuyCredits({ ...data, paid: { ...paid, currency: 'PLAY' } }, meta()))
      .thenRefused('COMMAND.INVALID');
    expect(allowed(buy({ id: 'ada', role: 'owner' }))).toBe(true);
    expect(allowed(buy({ id: 'bob', role: 'owner' }))).toBe(false);
  });
});

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

const at = (day: number, hour = 0) => new Date(Date.UTC(2026, 2, day, hour)).toISOString();
const later = (day: number, hour = 0) => metaOf('c1', undefined, at(day, hour));
const usd = (amountCents: string) => money(amountCents, 'USD');
const deposited = (amount: string, depositId = 'd1', withdrawableAt?: string): Of<'FundsDeposited'> => ({
  type: 'FundsDeposited',
  data: { ...usd(amount), depositId, ...(withdrawableAt === undefined ? {} : { withdrawableAt }) },
});
const deposit = (amount: string, depositId = 'd1') => new DepositFunds({ ...usd(amount), depositId }, meta());

describe('depositing', () => {
  it('adds the money', () => {
    given([])
      .when(deposit('500'))
      .then([deposited('500')]);
    given([deposited('500')])
      .when(hold('500', 'h1', 'USD'))
      .then([held('500', 'h1', 'USD')]);
  });

  it('happens once for each deposit, whatever the command', () => {
    given([deposited('500')])
      .when(deposit('500'))
      .then([]);
    given([deposited('500')])
      .when(deposit('500', 'd2'))
      .then([deposited('500', 'd2')]);
  });

  it('refuses another amount under the same name', () => {
    given([deposited('500')])
      .when(deposit('501'))
      .thenRefused('WALLET.DEPOSIT_DIFFERS');
  });
});

describe('withdrawing', () => {
  const withdrawal = { kind: 'withdrawal', withdrawalId: 'w1' } as const;
  const withdraw = (amount: string, day = 1, currency = 'USD') =>
    new HoldFunds({ ...money(amount, currency), holdId: 'w1', purpose: withdrawal }, later(day));
  const taken = (amount: string): Of<'FundsHeld'> => ({
    type: 'FundsHeld',
    data: { ...usd(amount), holdId: 'w1', purpose: withdrawal },
  });
  const not = (
    amount: string,
    reason: Of<'HoldRefused'>['data']['reason'],
    availableCents: string,
    currency = 'USD',
  ) => ({
    type: 'HoldRefused' as const,
    data: { ...money(amount, currency), holdId: 'w1', purpose: withdrawal, availableCents, reason },
  });
  const inMatch = (amount: string, id = 'h1') => held(amount, id, 'USD');
  const played = (amount: string, id = 'h1') => about('HoldPosted', amount, id, 'USD');
  const won = (amount: string, withdrawableAt?: string): Of<'FundsCredited'> => ({
    type: 'FundsCredited',
    data: { ...usd(amount), purpose, ...(withdrawableAt === undefined ? {} : { withdrawableAt }) },
  });
  const frozen = { type: 'WalletFrozen', data: { accountId: 'ada', reason: 'dispute', matchId } } as const;

  it('takes a deposit once its hold is over, and never one that has none', () => {
    given([deposited('500', 'd1', at(2))])
      .when(withdraw('500', 1))
      .then([not('500', 'not_withdrawable', '0')]);
    given([deposited('500', 'd1', at(2))])
      .when(withdraw('500', 2))
      .then([taken('500')]);
    given([deposited('500')])
      .when(withdraw('1', 28))
      .then([not('1', 'not_withdrawable', '0')]);
  });

  it('takes winnings once their window is over; the stake comes back as it was', () => {
    // 300 of a deposit that is never withdrawn, 200 staked, 380 paid: 180 were won.
    const history = [deposited('300'), inMatch('200'), played('200'), won('380', at(3))];
    given(history)
      .when(withdraw('180', 2))
      .then([not('180', 'not_withdrawable', '0')]);
    given(history)
      .when(withdraw('180', 3))
      .then([taken('180')]);
    given(history)
      .when(withdraw('181', 3))
      .then([not('181', 'not_withdrawable', '180')]);
  });

  it('lets winnings be played at once', () => {
    given([deposited('200'), inMatch('200'), played('200'), won('380', at(3))])
      .when(hold('380', 'h2', 'USD'))
      .then([inMatch('380', 'h2')]);
  });

  it('comes last after stakes: what cannot be withdrawn is played first', () => {
    const history = [deposited('300'), deposited('100', 'd2', at(1)), inMatch('250')];
    given(history)
      .when(withdraw('100', 2))
      .then([taken('100')]);
    given([...history, inMatch('100', 'h2')])
      .when(withdraw('51', 2))
      .then([not('51', 'insufficient', '50')]);
    given([...history, inMatch('100', 'h2'), about('HoldVoided', '100', 'h2', 'USD')])
      .when(withdraw('100', 2))
      .then([taken('100')]);
  });

  it('does not take winnings out of what a lost stake left', () => {
    given([deposited('300'), inMatch('300'), played('300'), won('120')])
      .when(withdraw('1', 9))
      .then([not('1', 'not_withdrawable', '0')]);
  });

  it.each(['PLAY', 'COMPUTE'])('never takes %s', (currency) => {
    given([
      granted('500', currency),
      about('FundsHeld', '100', 'h1', currency),
      about('HoldPosted', '100', 'h1', currency),
    ])
      .when(withdraw('1', 9, currency))
      .then([not('1', 'not_withdrawable', '0', currency)]);
  });

  it('does not take what was granted', () => {
    given([granted('500', 'USD')])
      .when(withdraw('1', 9))
      .then([not('1', 'not_withdrawable', '0')]);
  });

  it('says that there is too little before anything else', () => {
    given([deposited('5'), frozen])
      .when(withdraw('6'))
      .then([not('6', 'insufficient', '5')]);
  });

  it('stops while a wallet is frozen, and play does not', () => {
    const history = [deposited('500', 'd1', at(1)), frozen];
    given(history)
      .when(withdraw('100', 2))
      .then([not('100', 'frozen', '0')]);
    given(history)
      .when(hold('100', 'h1', 'USD'))
      .then([inMatch('100')]);
    given([...history, { type: 'WalletUnfrozen', data: frozen.data }])
      .when(withdraw('100', 2))
      .then([taken('100')]);
  });

  it('freezes for each match of its own, once', () => {
    const freeze = (id?: string) =>
      new FreezeWallet({ accountId: 'ada', reason: 'dispute', ...(id ? { matchId: id } : {}) }, meta());
    const unfreeze = new UnfreezeWallet({ accountId: 'ada', reason: 'over' }, meta());
    given([frozen]).when(freeze(matchId)).then([]);
    given([frozen])
      .when(freeze())
      .then([{ type: 'WalletFrozen', data: { accountId: 'ada', reason: 'dispute' } }]);
    given([frozen]).when(unfreeze).then([]);
  });

  it('takes what a bounty was won with, after its window', () => {
    const award = { ...usd('90'), bountyId: 'b1', matchId, seat: 0, withdrawableAt: at(4) };
    given([])
      .when(new AwardBounty(award, meta()))
      .then([{ type: 'BountyAwarded', data: award }]);
    given([{ type: 'BountyAwarded', data: award }])
      .when(withdraw('90', 3))
      .then([not('90', 'not_withdrawable', '0')]);
    given([{ type: 'BountyAwarded', data: award }])
      .when(withdraw('90', 4))
      .then([taken('90')]);
  });

  it('keeps a bounded number of ends, and never lets money go before its own', () => {
    const wins = Array.from({ length: 200 }, (_, i) => deposited('10', `d${i}`, at(1, i)));
    expect(fold(walletDecider, wins).purses.USD?.locks.length).toBeLessThanOrEqual(64);
    given(wins)
      .when(new HoldFunds({ ...usd('2000'), holdId: 'w1', purpose: withdrawal }, later(1, 198)))
      .then([not('2000', 'not_withdrawable', '1990')]);
    given(wins)
      .when(new HoldFunds({ ...usd('2000'), holdId: 'w1', purpose: withdrawal }, later(1, 199)))
      .then([taken('2000')]);
  });
});

describe('clawing back', () => {
  const clawBack = (amount: string, change: object = {}) =>
    new ClawBackFunds({ ...usd(amount), depositId: 'd1', reason: 'chargeback', ...change }, meta());
  const clawed = (amount: string, owedCents: string, clawBackId = 'd1:chargeback'): Of<'FundsClawedBack'> => ({
    type: 'FundsClawedBack',
    data: { ...usd(amount), depositId: 'd1', reason: 'chargeback', clawBackId, owedCents },
  });
  const repaid = (amount: string): Of<'DebtRepaid'> => ({ type: 'DebtRepaid', data: usd(amount) });
  const spent = [deposited('500'), held('300', 'h1', 'USD')];

  it('takes what is there', () => {
    given([deposited('500')])
      .when(clawBack('500'))
      .then([clawed('500', '0')]);
  });

  it('owes what is not there, and never goes below zero', () => {
    given(spent)
      .when(clawBack('500'))
      .then([clawed('500', '300')]);
    given([...spent, clawed('500', '300')])
      .when(hold('1', 'h2', 'USD'))
      .then([
        {
          ...refused('1', '0', 'USD'),
          data: { ...about('', '1', 'h2', 'USD').data, availableCents: '0', reason: 'owed' },
        },
      ]);
  });

  it('is paid off first by whatever comes in', () => {
    const owing = [...spent, clawed('500', '300')];
    given(owing)
      .when(deposit('200', 'd2'))
      .then([deposited('200', 'd2'), repaid('200')]);
    given(owing)
      .when(deposit('500', 'd2'))
      .then([deposited('500', 'd2'), repaid('300')]);
    given(owing)
      .when(post('570', 'h1'))
      .then([
        about('HoldPosted', '300', 'h1', 'USD'),
        { type: 'FundsCredited', data: { ...usd('570'), purpose } },
        repaid('300'),
      ]);
    given(owing)
      .when(release('h1'))
      .then([about('HoldVoided', '300', 'h1', 'USD'), repaid('300')]);
    given([...owing, deposited('500', 'd2'), repaid('300')])
      .when(hold('200', 'h2', 'USD'))
      .then([held('200', 'h2', 'USD')]);
  });

  it('stops withdrawals of every currency while something is owed', () => {
    const withdrawal = { kind: 'withdrawal', withdrawalId: 'w1' } as const;
    const euros = { accountId: 'ada', amountCents: '100', currency: 'EUR' };
    const eurosIn: WalletEvent = { type: 'FundsDeposited', data: { ...euros, depositId: 'e1', withdrawableAt: at(1) } };
    given([...spent, clawed('500', '300'), eurosIn])
      .when(new HoldFunds({ ...euros, holdId: 'w1', purpose: withdrawal }, later(2)))
      .then([
        {
          type: 'HoldRefused',
          data: { ...euros, holdId: 'w1', purpose: withdrawal, availableCents: '0', reason: 'owed' },
        },
      ]);
  });

  it('happens once for each claim, and never beyond the deposit', () => {
    given([deposited('500'), clawed('200', '0')])
      .when(clawBack('200'))
      .then([]);
    given([deposited('500'), clawed('200', '0')])
      .when(clawBack('300', { clawBackId: 're_2' }))
      .then([clawed('300', '0', 're_2')]);
    given([deposited('500'), clawed('200', '0')])
      .when(clawBack('301', { clawBackId: 're_2' }))
      .thenRefused('WALLET.CLAW_BACK_TOO_LARGE');
    given([]).when(clawBack('1')).thenRefused('WALLET.UNKNOWN_DEPOSIT');
    given([deposited('500')])
      .when(clawBack('1', { currency: 'EUR' }))
      .thenRefused('WALLET.UNKNOWN_DEPOSIT');
  });
});

describe('reversing a settlement', () => {
  const reverse = (stakeCents: string, payoutCents: string) =>
    new ReverseSettlement({ accountId: 'ada', currency: 'PLAY', purpose, stakeCents, payoutCents }, meta());
  const reversed = (stakeCents: string, payoutCents: string, owedCents: string): WalletEvent => ({
    type: 'SettlementReversed',
    data: { accountId: 'ada', currency: 'PLAY', purpose, stakeCents, payoutCents, owedCents },
  });
  const history = [granted('500'), held('500'), posted('500'), credited('900')];

  it('gives a loser the stake back', () => {
    given([granted('500'), held('500'), posted('500')])
      .when(reverse('500', '0'))
      .then([reversed('500', '0', '0')]);
    given([granted('500'), held('500'), posted('500'), reversed('500', '0', '0')])
      .when(hold('500', 'h2'))
      .then([held('500', 'h2')]);
  });

  it('takes from a winner what was won', () => {
    given(history)
      .when(reverse('500', '900'))
      .then([reversed('500', '900', '0')]);
    given([...history, reversed('500', '900', '0')])
      .when(hold('501', 'h2'))
      .then([{ ...refused('501', '500'), data: { ...refused('501', '500').data, holdId: 'h2' } }]);
  });

  it('owes what is gone', () => {
    given([...history, held('850', 'h2')])
      .when(reverse('500', '900'))
      .then([reversed('500', '900', '350')]);
  });
});

describe('holds with an end', () => {
  const until = (holdId: string, expiresAt: string): Of<'FundsHeld'> => ({
    type: 'FundsHeld',
    data: { ...money('100'), holdId, purpose, expiresAt },
  });
  const expired = (holdId: string) => about('HoldExpired', '100', holdId);
  const expire = (day: number) => new ExpireHolds({ accountId: 'ada' }, later(day));
  const history = [granted('300'), until('h1', at(2)), until('h2', at(3)), held('100', 'h3')];

  it('come back when their time has come, and no others', () => {
    given(history).when(expire(1)).then([]);
    given(history)
      .when(expire(2))
      .then([expired('h1')]);
    given(history)
      .when(expire(4))
      .then([expired('h1'), expired('h2')]);
  });

  it('end once', () => {
    given([...history, expired('h1')])
      .when(expire(2))
      .then([]);
    given([...history, expired('h1')])
      .when(post('0'))
      .thenRefused('WALLET.UNKNOWN_HOLD');
    given([...history, posted('100')])
      .when(expire(2))
      .then([]);
    given([...history, expired('h1')])
      .when(hold('100', 'h4'))
      .then([held('100', 'h4')]);
  });
});

describe('a budget', () => {
  const caps = (change: object): Of<'BudgetSet'> => ({
    type: 'BudgetSet',
    data: { accountId: 'ada', currency: 'COMPUTE', ...change },
  });
  const run = (agentId = 'ada.bot', runId = 'r1') => ({ kind: 'run', runId, agentId }) as const;
  const spend = (amount: string, day = 1, agentId?: string, holdId = 'h9') =>
    new HoldFunds({ ...money(amount, 'COMPUTE'), holdId, purpose: run(agentId) }, later(day));
  const ran = (amount: string, day: number, holdId: string, agentId?: string): Of<'FundsHeld'> => ({
    type: 'FundsHeld',
    data: { ...money(amount, 'COMPUTE'), holdId, purpose: run(agentId), budgetDay: at(day).slice(0, 10) },
  });
  const over = (amount: string, availableCents: string, agentId?: string): Of<'HoldRefused'> => ({
    type: 'HoldRefused',
    data: { ...money(amount, 'COMPUTE'), holdId: 'h9', purpose: run(agentId), availableCents, reason: 'budget' },
  });
  const rich = granted('100000', 'COMPUTE');

  it('is set by its owner', () => {
    const set = (id: string) =>
      new SetBudget({ accountId: 'ada', currency: 'COMPUTE' }, metaOf('c1', { id, role: 'owner' }));
    expect([allowed(set('ada')), allowed(set('bob'))]).toEqual([true, false]);
    given([])
      .when(set('ada'))
      .then([caps({})]);
  });

  it('caps a run, a day and all of it', () => {
    given([rich, caps({ perRunCents: '100' })])
      .when(spend('101'))
      .then([over('101', '100')]);
    const byDay = [rich, caps({ perDayCents: '100' }), ran('60', 1, 'h1')];
    given(byDay)
      .when(spend('41', 1))
      .then([over('41', '40')]);
    given(byDay)
      .when(spend('40', 1))
      .then([ran('40', 1, 'h9')]);
    given(byDay)
      .when(spend('100', 2))
      .then([ran('100', 2, 'h9')]);
    const inAll = [rich, caps({ totalCents: '100' }), ran('60', 1, 'h1')];
    given(inAll)
      .when(spend('41', 5))
      .then([over('41', '40')]);
  });

  it('caps a run over all that is held for it: the seats of one owner, and a stake beside its fee', () => {
    const forMatch = (runId: string, agentId: string, holdId: string) =>
      new HoldFunds({ ...money('60', 'COMPUTE'), holdId, purpose: { ...run(agentId, runId), seat: 1 } }, later(1));
    const stake = { kind: 'match', matchId, seat: 0, agentId: 'ada.bot' } as const;
    const staked: Of<'FundsHeld'> = {
      type: 'FundsHeld',
      data: { ...money('60', 'COMPUTE'), holdId: 'h1', purpose: stake, budgetDay: at(1).slice(0, 10) },
    };
    const answer = (history: WalletEvent[], command: HoldFunds) =>
      walletDecider.decide(command, fold(walletDecider, [rich, ...history]))[0];
    const capped = caps({ perRunCents: '100' });
    for (const agentId of ['ada.bot', 'ada.two']) {
      expect(answer([capped, staked], forMatch(matchId, agentId, 'h2'))).toMatchObject({
        type: 'HoldRefused',
        data: { reason: 'budget', availableCents: '40' },
      });
    }
    const ended: WalletEvent = {
      type: 'HoldVoided',
      data: { ...money('60', 'COMPUTE'), holdId: 'h1', purpose: stake },
    };
    const ofOne = caps({ agentId: 'ada.two', perRunCents: '100' });
    for (const [history, runId] of [
      [[capped, staked], 'another'],
      [[capped, staked, ended], matchId],
      [[ofOne, staked], matchId],
    ] as const) {
      expect(answer([...history], forMatch(runId, 'ada.two', 'h2'))).toMatchObject({ type: 'FundsHeld' });
    }
  });

  it('says what was spent on a day', () => {
    const [budget] = fold(walletDecider, [rich, caps({}), ran('60', 1, 'h1'), ran('5', 2, 'h2')]).budgets;
    const spent = [1, 2, 3].map((day) => budget && spentOn(budget, at(day).slice(0, 10)));
    expect([budget?.spentCents, spent[1], spent[2]]).toEqual([65n, 5n, 0n]);
  });

  it('caps an agent beside its owner', () => {
    const history = [rich, caps({ perDayCents: '100' }), caps({ agentId: 'ada.bot', perDayCents: '30' })];
    given([...history, ran('20', 1, 'h1')])
      .when(spend('11'))
      .then([over('11', '10')]);
    given([...history, ran('20', 1, 'h1')])
      .when(spend('80', 1, 'ada.other'))
      .then([ran('80', 1, 'h9', 'ada.other')]);
    given([...history, ran('20', 1, 'h1')])
      .when(spend('81', 1, 'ada.other'))
      .then([over('81', '80', 'ada.other')]);
  });

  it('gets back what a run did not use, and what was called off', () => {
    const history = [rich, caps({ totalCents: '100' }), ran('60', 1, 'h1')];
    const end = (type: 'HoldPosted' | 'HoldVoided' | 'HoldExpired') => ({
      type,
      data: { ...money('60', 'COMPUTE'), holdId: 'h1', purpose: run() },
    });
    const unused: WalletEvent = { type: 'FundsCredited', data: { ...money('50', 'COMPUTE'), purpose: run() } };
    given([...history, end('HoldPosted'), unused])
      .when(spend('90'))
      .then([ran('90', 1, 'h9')]);
    for (const type of ['HoldVoided', 'HoldExpired'] as const) {
      given([...history, end(type)])
        .when(spend('100'))
        .then([ran('100', 1, 'h9')]);
    }
    given([...history, end('HoldPosted')])
      .when(spend('41'))
      .then([over('41', '40')]);
  });

  it('keeps its count when it is changed or lifted, and counts no hold from before it', () => {
    const history = [rich, caps({ totalCents: '100' }), ran('60', 1, 'h1'), caps({}), caps({ totalCents: '70' })];
    given(history)
      .when(spend('11'))
      .then([over('11', '10')]);
    const before: WalletEvent = {
      type: 'FundsHeld',
      data: { ...money('60', 'COMPUTE'), holdId: 'h1', purpose: run() },
    };
    const back = { type: 'HoldVoided', data: { ...money('60', 'COMPUTE'), holdId: 'h1', purpose: run() } } as const;
    given([rich, before, caps({ totalCents: '100' }), back])
      .when(spend('101'))
      .then([over('101', '100')]);
  });

  it('is nothing to choose by whoever holds', () => {
    const forged = { ...money('1', 'COMPUTE'), holdId: 'h9', purpose: run(), budgetDay: '2026-01-01' };
    given([rich]).when(new HoldFunds(forged, meta())).thenRefused('COMMAND.INVALID');
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
