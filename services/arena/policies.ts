import { type DomainEvent, definePolicy, formatMoney } from '../kernel/index.js';
import type { WalletEvent } from '../wallet/index.js';
import { EscrowStake, RefuseStake } from './commands.js';

type StakeAnswer = Extract<WalletEvent, DomainEvent<'FundsHeld'> | DomainEvent<'HoldRefused'>>;

/** A match hears what became of each stake it asked for. */
export const escrow = definePolicy<StakeAnswer>(
  'arena.escrow',
  ['FundsHeld', 'HoldRefused'],
  ({ type, data }, meta) => {
    if (data.purpose.kind !== 'match') return [];
    const { matchId, seat } = data.purpose;
    if (type === 'FundsHeld') return [new EscrowStake({ matchId, seat }, meta(0))];
    const has = formatMoney(BigInt(data.availableCents));
    const detail = `${data.accountId} has ${has} of the ${formatMoney(BigInt(data.amountCents))} ${data.currency} staked.`;
    return [new RefuseStake({ matchId, seat, detail }, meta(0))];
  },
);
