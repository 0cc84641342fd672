import { type CommandMeta, fold, formatMoney } from '../kernel/index.js';
import { HoldFunds } from './commands.js';
import { purseOf, type WalletState, walletDecider, withheld } from './decider.js';
import { isMoney, withdrawableCents } from './purse.js';

export interface PurseSummary {
  readonly currency: string;
  readonly availableCents: bigint;
  readonly withdrawableCents: bigint;
  readonly heldCents: bigint;
  readonly owedCents: bigint;
}

/** What a wallet holds at this moment, by currency. */
export function pursesOf(state: WalletState, nowIso: string): readonly PurseSummary[] {
  const stopped = withheld(state) !== undefined;
  return Object.keys(state.purses)
    .sort()
    .map((currency) => {
      const purse = purseOf(state, currency);
      const held = state.holds.filter((hold) => hold.currency === currency);
      return {
        currency,
        availableCents: purse.availableCents,
        withdrawableCents: stopped || !isMoney(currency) ? 0n : withdrawableCents(purse, nowIso),
        heldCents: held.reduce((sum, { amountCents }) => sum + amountCents, 0n),
        owedCents: purse.owedCents,
      };
    });
}

/** What taking a seat would hold of a wallet. */
interface Cost {
  readonly agentId: string;
  readonly stakeCents: string;
  readonly currency: string;
  readonly computeCents: string;
}

/** Whether a wallet could pay for a seat right now, decided by the very rules that will decide it. */
export function afford(
  state: WalletState,
  accountId: string,
  { agentId, stakeCents, currency, computeCents }: Cost,
  meta: CommandMeta,
): { state: WalletState; refusal: string | null } {
  const asked = [
    { amountCents: stakeCents, currency },
    { amountCents: computeCents, currency: 'COMPUTE' },
  ];
  let after = state;
  for (const [i, money] of asked.filter(({ amountCents }) => amountCents !== '0').entries()) {
    const holdId = `estimate ${i} of ${meta.id}`;
    const purpose = { kind: 'run', runId: 'estimate', agentId } as const;
    const events = walletDecider.decide(new HoldFunds({ accountId, ...money, holdId, purpose }, meta), after);
    const refused = events.find((event) => event.type === 'HoldRefused');
    if (refused) {
      const left = formatMoney(BigInt(refused.data.availableCents));
      const wanted = `${formatMoney(BigInt(money.amountCents))} ${money.currency}`;
      return { state, refusal: `${refused.data.reason}: ${accountId} has ${left} for ${wanted}` };
    }
    after = fold(walletDecider, events, after);
  }
  return { state: after, refusal: null };
}
