import { type Fault, faultsOf } from './fault.js';

/** Who gets what, and how often: wallets, settlement, payments, and the judges of the books. */
export const moneyFaults: readonly Fault[] = [
  ...faultsOf('services/arena/decider.ts', 'services/arena/arena.spec.ts', [
    ['take a report for an attempt that is over', ' || lease.attempt !== data.attempt) {', ') {'],
    ["stake somebody else's money", 'ownerOf(agentId) !== accountId', "accountId === ''"],
    ['start a match before its bounty is held', 'if (state.escrowed.length + 1 < all.length) return [event];', ''],
    ['pay a reversed match again', "return unleased(state, 'reversed');", 'return state;'],
    [
      'believe a report without its signature',
      'if (signed && !isAuthentic(state.terms, data, signed)) {',
      'if (signed && signed.signature.length < 0) {',
    ],
  ]),
  ...faultsOf('services/wallet/purse.ts', 'services/wallet/wallet.spec.ts', [
    ['ignore a hold', '= purse.availableCents - amountCents;', '= purse.availableCents;'],
    ['withdraw winnings before their window is over', 'until === null || until > nowIso', 'until === null'],
  ]),
  ...faultsOf('services/wallet/decider.ts', 'services/wallet/wallet.spec.ts', [
    ['allow an overdraft', 'if (available < amountCents) return', 'if (available < 0n) return'],
    ['end a hold twice', 'return { ...without(state, holdId), posted:', 'return { ...state, posted:'],
    ['withdraw what may only be played', "purpose.kind === 'withdrawal' ? 'free' : 'locked'", "'free'"],
    ['let a frozen wallet pay out', "return state.freezes.length > 0 ? 'frozen' : undefined;", 'return undefined;'],
    ['take in a deposit twice', 'if (!before) return', 'if (before !== null) return'],
    ['forget a debt', 'owedCents: after.owedCents + owedCents', 'owedCents: after.owedCents'],
    ['claw back more than was deposited', 'if (amountCents > left) {', 'if (left < 0n) {'],
    ['spend beyond a budget', "left < amountCents ? refuse('budget', left)", "left < 0n ? refuse('budget', left)"],
    ['expire a hold before its time', 'expiresAt !== undefined && expiresAt <= meta.time', 'expiresAt !== undefined'],
  ]),
  ...faultsOf('services/wallet/decider.ts', 'services/wallet/losses.spec.ts', [
    ['let a reversal turn grants into money that may leave', 'putBack(purse, netCents, locks)', 'put(purse, netCents)'],
  ]),
  ...faultsOf('services/arena/settlement.ts', 'services/arena/settlement.spec.ts', [
    ['round the rake up', '(potCents * BigInt(rakeBps)) / 10_000n', '(potCents * BigInt(rakeBps) + 9_999n) / 10_000n'],
    ['give the same money to two winners of a bounty', 'won ? bountyCents / winners : 0n', 'won ? bountyCents : 0n'],
  ]),
  ...faultsOf('projections/balances/ledger.ts', 'projections/engine/projector.spec.ts', [
    ['post one side of a transfer only', '[line(from, currency, -amountCents), line(to', '[line(to'],
  ]),
  ...faultsOf('projections/balances/audit.ts', 'projections/balances/audit.spec.ts', [
    ['audit no fold', 'if (has !== availableCents)', 'if (has === null)'],
    ['audit no pot that is left', 'return left === 0n ? []', 'return left <= 2_000n ? []'],
    ['audit no wrong place', 'return there === sum ? []', 'return sum === sum ? []'],
  ]),
  ...faultsOf('services/payments/commands.ts', 'services/payments/payments.spec.ts', [
    ['let an operator say that something was paid', 'commandsOn(stream, isSystem)', 'commandsOn(stream, isStaff)'],
  ]),
  ...faultsOf('services/payments/notices.ts', 'services/payments/payments.spec.ts', [
    ['credit a payment twice', "if (status === 'received') return [];", ''],
    ['credit another amount than was asked for', 'order.amountCents !== amountCents || order', 'order'],
    ['take back more than was paid', 'return cents > 0n ? cents : 0n;', 'return cents;'],
  ]),
  ...faultsOf('services/payments/decider.ts', 'services/payments/payments.spec.ts', [
    ['record two transfers of one withdrawal', 'maybePaid(withdrawal)', "maybePaid(withdrawal) || status === 'paid'"],
    ['promise the same money to two refunds', 'left(payment) - underWay', 'left(payment) - 0n * underWay'],
  ]),
  ...faultsOf('services/payments/outgoing.ts', 'services/payments/outgoing.spec.ts', [
    ['pay again instead of looking up', 'if (paid) return record(paid);', ''],
    [
      'pay out of a wallet that was frozen meanwhile',
      "const why = isDisputed(now) ? 'disputed' : withheld((await load(wallet, accountId, 'tail')).state);",
      "const why = isDisputed(now) ? 'disputed' : undefined;",
    ],
    ['give up a transfer that may still turn up', 'if (!isOver) {', 'if (!isOver && paid) {'],
  ]),
  ...faultsOf('services/payments/policies.ts', 'services/payments/policies.spec.ts', [
    [
      'leave a disputed wallet open',
      "return [freeze, ...clawBack(data, data.disputeId, 'chargeback', meta)];",
      "return clawBack(data, data.disputeId, 'chargeback', meta);",
    ],
  ]),
  ...faultsOf('services/adapters/stripe.ts', 'services/adapters/stripe.int.spec.ts', [
    [
      'take silence for a refusal',
      'const refused = error instanceof Stripe.errors.StripeInvalidRequestError && [400, 404].includes(statusCode ?? 0);',
      'const refused = statusCode !== 0;',
    ],
  ]),
];
