import { type Command, type DomainEvent, definePolicy, formatMoney } from '../kernel/index.js';
import type { WalletEvent } from '../wallet/index.js';
import { EscrowBounty, EscrowCompute, EscrowStake, RefuseStake } from './commands.js';

type StakeAnswer = Extract<WalletEvent, DomainEvent<'FundsHeld'> | DomainEvent<'HoldRefused'>>;
type Refusal = Extract<WalletEvent, DomainEvent<'HoldRefused'>>['data'];
type Purpose = Refusal['purpose'];

/** A match hears what became of each stake it asked for, of the fees for its runs, and of its bounty. */
export const escrow = definePolicy<StakeAnswer>(
  'arena.escrow',
  ['FundsHeld', 'HoldRefused'],
  ({ type, data }, meta): readonly Command[] => {
    const asked = matchOf(data.purpose);
    if (!asked) return [];
    if (type === 'HoldRefused') return [new RefuseStake({ ...asked, detail: whyRefused(data) }, meta(0))];
    const { matchId, seat } = asked;
    if (seat === undefined) return [new EscrowBounty({ matchId }, meta(0))];
    const Escrow = data.purpose.kind === 'run' ? EscrowCompute : EscrowStake;
    return [new Escrow({ matchId, seat }, meta(0))];
  },
);

/** The match and, unless it is about the bounty, the seat that the money is for. */
function matchOf(purpose: Purpose): { matchId: string; seat?: number } | undefined {
  switch (purpose.kind) {
    case 'match':
      return { matchId: purpose.matchId, seat: purpose.seat };
    case 'run':
      return purpose.seat === undefined ? undefined : { matchId: purpose.runId, seat: purpose.seat };
    case 'bounty':
      return { matchId: purpose.matchId };
    default:
      return undefined;
  }
}

/** What a match says is for everybody to read; what somebody has or owes is not. So it says what was asked for alone. */
function whyRefused({ accountId, amountCents, currency, reason, purpose }: Refusal): string {
  const wanted = `${formatMoney(BigInt(amountCents))} ${currency}`;
  if (reason === 'budget') return `The budget of ${accountId} does not allow ${wanted} for this.`;
  const what = { run: 'this run costs', bounty: 'the bounty is' }[purpose.kind as string] ?? 'the stake is';
  return `${accountId} cannot pay: ${what} ${wanted}.`;
}
