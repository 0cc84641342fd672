import { AgonError, type CommandOf, type Decider, fold, unreachable } from '../kernel/index.js';
import { type Budget, type BudgetCount, budgetsOn, leftCents, spend, unspend, withBudget } from './budget.js';
import type * as commands from './commands.js';
import type { Purpose, RefusalReason, WalletEvent } from './events.js';
import { type Losses, lose, NO_LOSSES, regain } from './losses.js';
import { EMPTY_PURSE, isMoney, type Lock, type Purse, put, putBack, take, withdrawableCents } from './purse.js';

export type WalletCommand = CommandOf<typeof commands>;

interface Hold {
  readonly holdId: string;
  readonly amountCents: bigint;
  readonly currency: string;
  readonly purpose: Purpose;
  readonly expiresAt: string | undefined;
  /** How locked the money is that was taken. */
  readonly taken: readonly Lock[];
  readonly counted: BudgetCount | undefined;
}

interface Deposit {
  readonly amountCents: bigint;
  readonly currency: string;
  /** What was taken back of it, by the claim's name. */
  readonly clawedBack: Readonly<Record<string, bigint>>;
}

export interface WalletState {
  readonly purses: Readonly<Record<string, Purse>>;
  /** Holds that have not ended. An ended hold is forgotten, so a wallet's state does not grow with its matches. */
  readonly holds: readonly Hold[];
  /** The hold that was posted last: what is credited next comes back of it. */
  readonly posted: Hold | undefined;
  readonly losses: Losses;
  readonly deposits: Readonly<Record<string, Deposit>>;
  /** Why withdrawals are stopped: a key for every match and every payment in dispute, and one for the operator. */
  readonly freezes: readonly string[];
  readonly budgets: readonly Budget[];
}

/** Why nothing may leave this wallet now, whatever is in it. */
export function withheld(state: WalletState): 'owed' | 'frozen' | undefined {
  if (Object.values(state.purses).some(({ owedCents }) => owedCents > 0n)) return 'owed';
  return state.freezes.length > 0 ? 'frozen' : undefined;
}

type Of<Type extends WalletEvent['type']> = Extract<WalletEvent, { type: Type }>['data'];

export const purseOf = (state: WalletState, currency: string): Purse => state.purses[currency] ?? EMPTY_PURSE;

const withPurse = (state: WalletState, currency: string, purse: Purse): WalletState => ({
  ...state,
  purses: { ...state.purses, [currency]: purse },
});

function evolve(state: WalletState, event: WalletEvent): WalletState {
  switch (event.type) {
    case 'CreditsGranted':
      return received(state, event.data, null);
    case 'CreditsBought':
      return bought(state, event.data);
    case 'FundsDeposited':
      return deposited(state, event.data);
    case 'FundsHeld':
      return held(state, event.data);
    case 'HoldPosted':
      return posted(state, event.data);
    case 'HoldVoided':
    case 'HoldExpired':
      return released(state, event.data);
    case 'FundsCredited':
      return credited(state, event.data);
    case 'BountyAwarded':
      return received(state, event.data, event.data.withdrawableAt);
    case 'FundsClawedBack':
      return clawedBack(state, event.data);
    case 'SettlementReversed':
      return reversed(state, event.data);
    case 'DebtRepaid':
      return repaid(state, event.data);
    case 'WalletFrozen':
      return { ...state, freezes: [...state.freezes, freezeKey(event.data)] };
    case 'WalletUnfrozen':
      return { ...state, freezes: state.freezes.filter((key) => key !== freezeKey(event.data)) };
    case 'BudgetSet':
      return { ...state, budgets: withBudget(state.budgets, event.data) };
    case 'HoldRefused':
      return state;
    default:
      return unreachable(event);
  }
}

type Amount = { readonly currency: string; readonly amountCents: string };

function received(
  state: WalletState,
  { currency, amountCents }: Amount,
  until: string | null | undefined,
): WalletState {
  const lock = isMoney(currency) ? until : undefined;
  return withPurse(state, currency, put(purseOf(state, currency), BigInt(amountCents), lock));
}

function deposited(state: WalletState, data: Of<'FundsDeposited'>): WalletState {
  const { depositId, currency } = data;
  const deposit: Deposit = { amountCents: BigInt(data.amountCents), currency, clawedBack: {} };
  const after = received(state, data, data.withdrawableAt ?? null);
  return { ...after, deposits: { ...state.deposits, [depositId]: deposit } };
}

function bought(state: WalletState, { creditCents, paid }: Of<'CreditsBought'>): WalletState {
  const { purse } = take(purseOf(state, paid.currency), BigInt(paid.amountCents), 'locked');
  const after = withPurse(state, paid.currency, purse);
  return withPurse(after, 'COMPUTE', put(purseOf(after, 'COMPUTE'), BigInt(creditCents)));
}

function held(state: WalletState, data: Of<'FundsHeld'>): WalletState {
  const { holdId, currency, purpose, expiresAt, budgetDay } = data;
  const amountCents = BigInt(data.amountCents);
  const order = purpose.kind === 'withdrawal' ? 'free' : 'locked';
  const { purse, taken } = take(purseOf(state, currency), amountCents, order);
  const spent = budgetDay === undefined ? undefined : spend(state.budgets, data, budgetDay, amountCents);
  const hold: Hold = { holdId, amountCents, currency, purpose, expiresAt, taken, counted: spent?.counted };
  return {
    ...withPurse(state, currency, purse),
    holds: [...state.holds, hold],
    budgets: spent?.budgets ?? state.budgets,
  };
}

function released(state: WalletState, { holdId, currency }: Of<'HoldVoided'>): WalletState {
  const hold = findHold(state, holdId);
  if (!hold) return state;
  const purse = putBack(purseOf(state, currency), hold.amountCents, hold.taken);
  const budgets = unspend(state.budgets, hold.counted, hold.amountCents);
  return { ...withPurse(without(state, holdId), currency, purse), budgets };
}

function posted(state: WalletState, { holdId }: Of<'HoldPosted'>): WalletState {
  const hold = findHold(state, holdId);
  if (!hold) return state;
  return { ...without(state, holdId), posted: hold, losses: lose(state.losses, hold, 0n) };
}

/** Of a payout, what was held comes back as it was; the rest was won. */
function credited(state: WalletState, { currency, amountCents, withdrawableAt }: Of<'FundsCredited'>): WalletState {
  const { posted } = state;
  const [payoutCents, stakeCents] = [BigInt(amountCents), posted?.amountCents ?? 0n];
  const backCents = payoutCents < stakeCents ? payoutCents : stakeCents;
  const purse = putBack(purseOf(state, currency), backCents, posted?.taken ?? []);
  const lock = isMoney(currency) ? withdrawableAt : undefined;
  const wonCents = payoutCents - backCents;
  const budgets = unspend(state.budgets, posted?.counted, backCents);
  const after = wonCents > 0n ? put(purse, wonCents, lock) : purse;
  const losses = posted ? lose(state.losses, posted, backCents) : state.losses;
  return { ...withPurse(state, currency, after), posted: undefined, budgets, losses };
}

function clawedBack(state: WalletState, data: Of<'FundsClawedBack'>): WalletState {
  const { depositId, clawBackId, currency, owedCents } = data;
  const amountCents = BigInt(data.amountCents);
  const deposit = state.deposits[depositId];
  if (!deposit) return state;
  const after = { ...deposit, clawedBack: { ...deposit.clawedBack, [clawBackId]: amountCents } };
  return {
    ...withPurse(state, currency, lost(purseOf(state, currency), amountCents, owedCents, 'locked')),
    deposits: { ...state.deposits, [depositId]: after },
  };
}

function reversed(state: WalletState, data: Of<'SettlementReversed'>): WalletState {
  const { currency, stakeCents, payoutCents, owedCents } = data;
  const netCents = BigInt(stakeCents) - BigInt(payoutCents);
  const purse = purseOf(state, currency);
  if (netCents < 0n) return withPurse(state, currency, lost(purse, -netCents, owedCents, 'won'));
  const { locks, losses } = regain(state.losses, data);
  return { ...withPurse(state, currency, putBack(purse, netCents, locks)), losses };
}

/** Takes what is there, and owes the rest. */
function lost(purse: Purse, amountCents: bigint, owed: string, order: 'locked' | 'won'): Purse {
  const owedCents = BigInt(owed);
  const after = take(purse, amountCents - owedCents, order).purse;
  return { ...after, owedCents: after.owedCents + owedCents };
}

function repaid(state: WalletState, { currency, amountCents }: Of<'DebtRepaid'>): WalletState {
  const { purse } = take(purseOf(state, currency), BigInt(amountCents), 'locked');
  return withPurse(state, currency, { ...purse, owedCents: purse.owedCents - BigInt(amountCents) });
}

/** What comes in pays what is owed, before anything else can be done with it. */
function decide(command: WalletCommand, state: WalletState): WalletEvent[] {
  const events = answer(command, state);
  if (events.length === 0 || !Object.values(state.purses).some(({ owedCents }) => owedCents > 0n)) return events;
  const after = fold(walletDecider, events, state);
  for (const [currency, { availableCents, owedCents }] of Object.entries(after.purses)) {
    const amount = availableCents < owedCents ? availableCents : owedCents;
    if (amount === 0n) continue;
    const { accountId } = command.data;
    events.push({ type: 'DebtRepaid', data: { accountId, currency, amountCents: amount.toString() } });
  }
  return events;
}

function answer(command: WalletCommand, state: WalletState): WalletEvent[] {
  switch (command.type) {
    case 'GrantCredits':
      return [{ type: 'CreditsGranted', data: command.data }];
    case 'BuyCredits':
      return buy(command, state);
    case 'DepositFunds':
      return deposit(command, state);
    case 'HoldFunds':
      return holdFunds(command, state);
    case 'PostHold':
      return postHold(command, state);
    case 'VoidHold':
      return voidHold(command, state);
    case 'ExpireHolds':
      return expireHolds(command, state);
    case 'AwardBounty':
      return [{ type: 'BountyAwarded', data: command.data }];
    case 'ClawBackFunds':
      return clawBack(command, state);
    case 'ReverseSettlement':
      return reverse(command, state);
    case 'FreezeWallet':
      return state.freezes.includes(freezeKey(command.data)) ? [] : [{ type: 'WalletFrozen', data: command.data }];
    case 'UnfreezeWallet':
      return state.freezes.includes(freezeKey(command.data)) ? [{ type: 'WalletUnfrozen', data: command.data }] : [];
    case 'SetBudget':
      return [{ type: 'BudgetSet', data: command.data }];
  }
}

function deposit({ data }: commands.DepositFunds, state: WalletState): WalletEvent[] {
  const before = state.deposits[data.depositId];
  if (!before) return [{ type: 'FundsDeposited', data }];
  if (before.amountCents === BigInt(data.amountCents) && before.currency === data.currency) return [];
  throw new AgonError(
    'WALLET.DEPOSIT_DIFFERS',
    `Deposit ${data.depositId} was ${before.amountCents} cents of ${before.currency} before. Give another deposit its own id.`,
  );
}

function buy({ data }: commands.BuyCredits, state: WalletState): WalletEvent[] {
  const { accountId, paid } = data;
  const { availableCents, owedCents } = purseOf(state, paid.currency);
  if (!isMoney(paid.currency)) throw new AgonError('COMMAND.INVALID', `${paid.currency} buys nothing: it is no money.`);
  if (owedCents > 0n) throw new AgonError('WALLET.OWED', `${accountId} owes ${owedCents} cents of ${paid.currency}.`);
  if (availableCents < BigInt(paid.amountCents)) {
    const has = `${accountId} has ${availableCents} cents of ${paid.currency}`;
    throw new AgonError(
      'WALLET.INSUFFICIENT_FUNDS',
      `${has}, and this costs ${paid.amountCents}. Deposit more, or pay it at a checkout.`,
    );
  }
  return [{ type: 'CreditsBought', data }];
}

function holdFunds({ data, meta }: commands.HoldFunds, state: WalletState): WalletEvent[] {
  if (findHold(state, data.holdId))
    throw new AgonError('WALLET.HOLD_EXISTS', `There is a hold ${data.holdId} already.`);
  if (data.budgetDay !== undefined) throw new AgonError('COMMAND.INVALID', 'HoldFunds does not choose its budgetDay.');
  const { currency, purpose } = data;
  const amountCents = BigInt(data.amountCents);
  // A refusal is an event, because the match that asked for the stake has to hear of it.
  const refuse = (reason: RefusalReason, available: bigint): WalletEvent[] => [
    { type: 'HoldRefused', data: { ...heldOf(data), availableCents: available.toString(), reason } },
  ];
  const purse = purseOf(state, currency);
  const available = purse.availableCents;
  if (purse.owedCents > 0n) return refuse('owed', available);
  if (available < amountCents) return refuse('insufficient', available);
  if (purpose.kind === 'withdrawal') {
    const why = withheld(state);
    if (why) return refuse(why, 0n);
    const withdrawable = isMoney(currency) ? withdrawableCents(purse, meta.time) : 0n;
    return withdrawable < amountCents ? refuse('not_withdrawable', withdrawable) : [{ type: 'FundsHeld', data }];
  }
  const budgets = budgetsOn(state.budgets, data);
  if (budgets.length === 0) return [{ type: 'FundsHeld', data }];
  const budgetDay = meta.time.slice(0, 10);
  const left = leftCents(budgets, budgetDay, data, state.holds) ?? amountCents;
  return left < amountCents ? refuse('budget', left) : [{ type: 'FundsHeld', data: { ...data, budgetDay } }];
}

function postHold({ data }: commands.PostHold, state: WalletState): WalletEvent[] {
  const { accountId, holdId, payoutCents, withdrawableAt } = data;
  const hold = findHold(state, holdId);
  if (!hold) throw new AgonError('WALLET.UNKNOWN_HOLD', `The wallet of ${accountId} has no open hold ${holdId}.`);
  const posted: WalletEvent = { type: 'HoldPosted', data: endOf(accountId, hold) };
  if (payoutCents === '0') return [posted];
  const { currency, purpose } = hold;
  const lock = withdrawableAt === undefined ? {} : { withdrawableAt };
  return [posted, { type: 'FundsCredited', data: { accountId, amountCents: payoutCents, currency, purpose, ...lock } }];
}

/** Voiding what is not held gives nothing back and is no error: a refused stake is voided with its match. */
function voidHold({ data }: commands.VoidHold, state: WalletState): WalletEvent[] {
  const hold = findHold(state, data.holdId);
  return hold ? [{ type: 'HoldVoided', data: endOf(data.accountId, hold) }] : [];
}

function expireHolds({ data, meta }: commands.ExpireHolds, state: WalletState): WalletEvent[] {
  const over = state.holds.filter(({ expiresAt }) => expiresAt !== undefined && expiresAt <= meta.time);
  return over.map((hold) => ({ type: 'HoldExpired', data: endOf(data.accountId, hold) }));
}

function clawBack({ data }: commands.ClawBackFunds, state: WalletState): WalletEvent[] {
  const { depositId, currency } = data;
  const deposit = state.deposits[depositId];
  if (deposit?.currency !== currency) {
    throw new AgonError('WALLET.UNKNOWN_DEPOSIT', `There is no deposit ${depositId} in ${currency} to take back.`);
  }
  const clawBackId = data.clawBackId ?? `${depositId}:${data.reason}`;
  if (deposit.clawedBack[clawBackId] !== undefined) return [];
  const amountCents = BigInt(data.amountCents);
  const left = Object.values(deposit.clawedBack).reduce((rest, cents) => rest - cents, deposit.amountCents);
  if (amountCents > left) {
    throw new AgonError(
      'WALLET.CLAW_BACK_TOO_LARGE',
      `${amountCents} cents cannot be taken back of deposit ${depositId}: ${left} of it are left.`,
    );
  }
  const owedCents = missing(purseOf(state, currency), amountCents);
  return [{ type: 'FundsClawedBack', data: { ...data, clawBackId, owedCents } }];
}

function reverse({ data }: commands.ReverseSettlement, state: WalletState): WalletEvent[] {
  const lostCents = BigInt(data.payoutCents) - BigInt(data.stakeCents);
  const owedCents = missing(purseOf(state, data.currency), lostCents);
  return [{ type: 'SettlementReversed', data: { ...data, owedCents } }];
}

/** How much of an amount is not there. */
function missing({ availableCents }: Purse, amountCents: bigint): string {
  return amountCents > availableCents ? (amountCents - availableCents).toString() : '0';
}

const freezeKey = ({ matchId = '', disputeId = '' }: Of<'WalletFrozen'>) => `${matchId}:${disputeId}`;

const heldOf = ({ accountId, amountCents, currency, holdId, purpose }: commands.HoldFunds['data']) => ({
  accountId,
  amountCents,
  currency,
  holdId,
  purpose,
});

const endOf = (accountId: string, { holdId, amountCents, currency, purpose }: Hold) => ({
  accountId,
  holdId,
  amountCents: amountCents.toString(),
  currency,
  purpose,
});

const findHold = (state: WalletState, holdId: string) => state.holds.find((hold) => hold.holdId === holdId);

const without = (state: WalletState, holdId: string): WalletState => ({
  ...state,
  holds: state.holds.filter((hold) => hold.holdId !== holdId),
});

export const walletDecider: Decider<WalletState, WalletCommand, WalletEvent> = {
  initial: { purses: {}, holds: [], posted: undefined, losses: NO_LOSSES, deposits: {}, freezes: [], budgets: [] },
  evolve,
  decide,
};
