import { describe, expect, it } from 'vitest';
import type { RecordedEvent } from '../../services/kernel/index.js';
import { auditLog, auditMoney } from './audit.js';

const matchId = '6f1f8e50-1d9e-4c8b-9c59-d5f0a3a1b6d4';
type Entry = readonly [stream: string, type: string, data: object];
const money = { currency: 'USD', amountCents: '500' };
const purposeOf = (seat: number) => ({ kind: 'match', matchId, seat });

const deposit = (accountId: string, more: object = {}): Entry => [
  `wallet-${accountId}`,
  'FundsDeposited',
  { accountId, ...money, depositId: `d-${accountId}`, ...more },
];
const onHold =
  (type: string) =>
  (accountId: string, seat: number, more: object = {}): Entry => {
    const held = { accountId, ...money, holdId: `${matchId}:${seat}`, purpose: purposeOf(seat) };
    return [`wallet-${accountId}`, type, { ...held, ...more }];
  };
const [held, posted, voided] = [onHold('FundsHeld'), onHold('HoldPosted'), onHold('HoldVoided')];
const credited = (accountId: string, seat: number, amountCents: string): Entry => [
  `wallet-${accountId}`,
  'FundsCredited',
  { accountId, currency: 'USD', amountCents, purpose: purposeOf(seat) },
];
const ended = (type: string, more: object = {}): Entry => [
  `match-${matchId}`,
  type,
  { matchId, currency: 'USD', ...more },
];
const settled = ended('MatchSettled', { rakeCents: '100' });
const prize = { accountId: 'ada', ...money, bountyId: 'b', matchId, seat: 0 };

const staked = [deposit('ada'), deposit('bob'), held('ada', 0), held('bob', 1)];
const paid = [...staked, settled, posted('ada', 0), credited('ada', 0, '900'), posted('bob', 1)];

const recorded = (entries: readonly Entry[]) =>
  entries.map(([stream, type, data], i) => {
    const time = `2026-01-01T00:00:0${i % 10}.000Z`;
    return { position: i + 1, stream, type, data, time } as unknown as RecordedEvent;
  });
const audit = (...entries: readonly Entry[]) => auditMoney(recorded(entries));

describe('the audit of money', () => {
  it('finds nothing wrong with matches that are paid, voided, and being played', () => {
    expect(audit(...paid)).toEqual([]);
    expect(audit(...staked, ended('MatchVoided'), voided('ada', 0), voided('bob', 1))).toEqual([]);
    expect(audit(...staked)).toEqual([]);
  });

  const withdrawn = held('ada', 0, { holdId: 'w', purpose: { kind: 'withdrawal', withdrawalId: 'w' } });
  it.each<[rule: string, log: readonly Entry[], fault: RegExp]>([
    ['more is held than there is', [deposit('ada'), held('ada', 0, { amountCents: '501' })], /^position 2: .*501.*500/],
    [
      'a debt is repaid that nobody has',
      [deposit('ada'), ['wallet-ada', 'DebtRepaid', { accountId: 'ada', ...money }]],
      /overdrawn, with 0 and -500 owed/,
    ],
    [
      'the ledger gives what the fold does not',
      [deposit('ada'), voided('ada', 0)],
      /the ledger has 1000, the fold 500/,
    ],
    ['a hold ends that was not open', [deposit('ada'), posted('ada', 0)], /:0 ended and was not open/],
    ['a hold ends twice', [...paid, posted('bob', 1)], /:1 of bob ended twice/],
    ['a match pays a wallet twice', [...paid, credited('ada', 0, '900')], /^ada for .*"seat":0.* was paid twice/],
    [
      'a bounty is paid twice',
      [deposit('ada'), ['wallet-ada', 'BountyAwarded', prize], ['wallet-ada', 'BountyAwarded', prize]],
      /^ada for bounty b of .* was paid twice/,
    ],
    [
      'a settled match keeps a hold',
      paid.slice(0, -1),
      /:1 of 5\.00 USD of bob is still open, and match .* was settled at position 5/,
    ],
    [
      'a voided match keeps a hold',
      [...staked, ended('MatchVoided'), voided('bob', 1)],
      /:0 of 5\.00 USD of ada is still open.*voided at position 5/,
    ],
    [
      'a drawn match pays nobody',
      [...staked, ended('MatchSettled', { rakeCents: '0' })],
      /:0 of 5\.00 USD of ada is still open/,
    ],
    [
      'a match pays less than its pot',
      paid.map((entry) => (entry[1] === 'FundsCredited' ? credited('ada', 0, '890') : entry)),
      /^0\.10 USD stay in escrow, and match .* was settled at position 5/,
    ],
    [
      'a reversal gives back too little',
      [...paid, ended('MatchReversed', { rakeCents: '100' })],
      /1\.00 USD stay in escrow, .*reversed/,
    ],
    [
      'what left a hold is not where it belongs',
      [
        deposit('ada'),
        withdrawn,
        [...voided('ada', 0).slice(0, 2), { ...withdrawn[2], purpose: { kind: 'other' } }] as never,
      ],
      /^payout-clearing has 500 USD, and open holds put 0 there/,
    ],
  ])('says so when %s', (_rule, log, fault) => {
    expect(audit(...log)).toContainEqual(expect.stringMatching(fault));
  });

  it('does not call stuck what a match has still to pay, until it has had its time', async () => {
    const log = recorded(paid.slice(0, -1));
    const store = { readAll: async ({ after = 0 } = {}) => log.slice(after) };
    const same = Object.assign((event: object) => event as never, { knows: () => true });
    expect(await auditLog(store, same, '2026-01-01T00:00:03.000Z')).toEqual([]);
    expect(await auditLog(store, same, '2026-01-01T00:00:04.000Z')).toHaveLength(1);
  });
});
