import { AgonError, type Decider, unreachable } from '../kernel/index.js';
import type { HoldFunds, PostHold, VoidHold, WalletCommand } from './commands.js';
import type { Purpose, WalletEvent } from './events.js';

interface Hold {
  readonly holdId: string;
  readonly amountCents: bigint;
  readonly currency: string;
  readonly purpose: Purpose;
}

export interface WalletState {
  /** What can be spent, per currency: holds are already taken out. */
  readonly available: Readonly<Record<string, bigint>>;
  /** Holds that have not ended. An ended hold is forgotten, so a wallet's state does not grow with its history. */
  readonly holds: readonly Hold[];
}

function evolve(state: WalletState, event: WalletEvent): WalletState {
  const { currency } = event.data;
  const amountCents = BigInt(event.data.amountCents);
  const moved = (byCents: bigint) => ({ ...state.available, [currency]: (state.available[currency] ?? 0n) + byCents });
  switch (event.type) {
    case 'CreditsGranted':
    case 'FundsCredited':
      return { available: moved(amountCents), holds: state.holds };
    case 'FundsHeld': {
      const { holdId, purpose } = event.data;
      return { available: moved(-amountCents), holds: [...state.holds, { holdId, amountCents, currency, purpose }] };
    }
    case 'HoldPosted':
      return { available: state.available, holds: without(state.holds, event.data.holdId) };
    case 'HoldVoided':
      return { available: moved(amountCents), holds: without(state.holds, event.data.holdId) };
    case 'HoldRefused':
      return state;
    default:
      return unreachable(event);
  }
}

function decide(command: WalletCommand, state: WalletState): WalletEvent[] {
  switch (command.type) {
    case 'GrantCredits':
      return [{ type: 'CreditsGranted', data: command.data }];
    case 'HoldFunds':
      return holdFunds(command, state);
    case 'PostHold':
      return postHold(command, state);
    case 'VoidHold':
      return voidHold(command, state);
  }
}

function holdFunds({ data }: HoldFunds, state: WalletState): WalletEvent[] {
  if (findHold(state, data.holdId))
    throw new AgonError('WALLET.HOLD_EXISTS', `There is a hold ${data.holdId} already.`);
  const available = state.available[data.currency] ?? 0n;
  // A refusal is an event, because the match that asked for the stake has to hear of it.
  if (available < BigInt(data.amountCents)) {
    return [{ type: 'HoldRefused', data: { ...data, availableCents: available.toString() } }];
  }
  return [{ type: 'FundsHeld', data }];
}

function postHold({ data }: PostHold, state: WalletState): WalletEvent[] {
  const { accountId, holdId, payoutCents } = data;
  const hold = findHold(state, holdId);
  if (!hold) throw new AgonError('WALLET.UNKNOWN_HOLD', `The wallet of ${accountId} has no open hold ${holdId}.`);
  const { currency, purpose } = hold;
  const amountCents = hold.amountCents.toString();
  const posted: WalletEvent = { type: 'HoldPosted', data: { accountId, holdId, amountCents, currency, purpose } };
  if (payoutCents === '0') return [posted];
  return [posted, { type: 'FundsCredited', data: { accountId, amountCents: payoutCents, currency, purpose } }];
}

/** Voiding what is not held gives nothing back and is no error: a refused stake is voided with its match. */
function voidHold({ data }: VoidHold, state: WalletState): WalletEvent[] {
  const hold = findHold(state, data.holdId);
  if (!hold) return [];
  const { amountCents, currency, purpose } = hold;
  return [{ type: 'HoldVoided', data: { ...data, amountCents: amountCents.toString(), currency, purpose } }];
}

const findHold = (state: WalletState, holdId: string) => state.holds.find((hold) => hold.holdId === holdId);

const without = (holds: readonly Hold[], holdId: string) => holds.filter((hold) => hold.holdId !== holdId);

export const walletDecider: Decider<WalletState, WalletCommand, WalletEvent> = {
  initial: { available: {}, holds: [] },
  evolve,
  decide,
};
