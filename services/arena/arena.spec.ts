import { describe, expect, it } from 'vitest';
import { metaOf } from '../kernel/fixtures.js';
import {
  type Actor,
  type Command,
  canonical,
  checkedData,
  fold,
  newSigningKey,
  type Role,
  roles,
} from '../kernel/index.js';
import { allowed, specification } from '../kernel/spec.js';
import {
  EscrowBounty,
  EscrowCompute,
  EscrowStake,
  ExpireLease,
  ExpireMatch,
  ExtendLease,
  RefuseStake,
  ReleaseMatch,
} from './commands.js';
import { ATTEMPTS_MAX, arenaDecider } from './decider.js';
import {
  AbandonMatch,
  type ArenaEvent,
  arena,
  arenaEvents,
  attemptText,
  ClaimMatch,
  FailAttempt,
  isAuthentic,
  ProposeMatch,
  ReportMatch,
  ReverseMatch,
  VoidMatch,
} from './index.js';

const given = specification(arena);
const matchId = '8f14e45f-ceea-467f-a8f3-0d1c3b2a1f00';
const at = (time: string) => `2026-03-01T${time}.000Z`;
const meta = (actor?: Actor, time = at('12:00:00')) => metaOf('c1', actor, time);

const seat = (accountId: string, agent = 'bot') => ({
  agentId: `${accountId}.${agent}`,
  accountId,
  version: 1,
  codeDigest: 'a'.repeat(64),
  runtime: 'javascript' as const,
});
const terms = {
  matchId,
  game: 'tic-tac-toe',
  stakeCents: '500',
  currency: 'PLAY',
  seed: 'seed-1',
  seats: [seat('ada'), seat('bob')],
  rakeBps: 1000,
};
const outcome = { winner: 0, scores: [1, 0], reason: 'line', detail: '', seatAtFault: null };
const execution = {
  driver: 'wasm',
  gameVersion: 1,
  limits: { fuel: 1_000_000 },
  usage: [
    { fuel: 10, peakMemoryBytes: 1024 },
    { fuel: 12, peakMemoryBytes: 2048 },
  ],
};
const turns = [
  { turn: 1, seat: 0, action: { cell: 4 }, fuel: 10 },
  { turn: 2, seat: 1, action: null, fuel: 12 },
];

const propose = (change: object = {}, actor?: Actor) => new ProposeMatch({ ...terms, ...change }, meta(actor));
const escrow = (number: number, actor?: Actor) => new EscrowStake({ matchId, seat: number }, meta(actor));
const refuse = (detail = 'too little', actor?: Actor) => new RefuseStake({ matchId, seat: 1, detail }, meta(actor));
const claim = (runnerId = 'runner-1', time = at('12:00:00'), actor?: Actor) =>
  new ClaimMatch({ matchId, runnerId, leaseMs: 60_000 }, meta(actor, time));
const report = (change: object = {}, actor?: Actor) =>
  new ReportMatch({ matchId, runnerId: 'runner-1', attempt: 1, turns, outcome, execution, ...change }, meta(actor));
const fail = (attempt = 1, runnerId = 'runner-1', actor?: Actor) =>
  new FailAttempt({ matchId, runnerId, attempt, reason: 'The cell died.' }, meta(actor));
const attempt1 = { matchId, runnerId: 'runner-1', attempt: 1 };
const extend = (change: object = {}, time = at('12:00:30'), actor?: Actor) =>
  new ExtendLease({ ...attempt1, leaseMs: 60_000, ...change }, meta(actor, time));
const expire = (time = at('12:01:00'), change: object = {}, actor?: Actor) =>
  new ExpireLease({ ...attempt1, ...change }, meta(actor, time));
const release = (change: object = {}, actor?: Actor) =>
  new ReleaseMatch({ ...attempt1, reason: 'The runner is stopping.', ...change }, meta(actor));
const abandon = (actor?: Actor) => new AbandonMatch({ matchId, detail: 'no door' }, meta(actor));
const outwait = (status: 'proposed' | 'ready', attempts = 0, actor?: Actor) =>
  new ExpireMatch({ matchId, status, attempts, waitedS: 60 }, meta(actor));
const cancel = (actor?: Actor) => new VoidMatch({ matchId, detail: 'by hand' }, meta(actor));

const proposed = (change: object = {}): ArenaEvent => ({ type: 'MatchProposed', data: { ...terms, ...change } });
const escrowed = (number: number): ArenaEvent => ({ type: 'StakeEscrowed', data: { matchId, seat: number } });
const ready: ArenaEvent = { type: 'MatchReady', data: { matchId } };
const claimed = (attempt = 1, runnerId = 'runner-1', leaseUntil = at('12:01:00')): ArenaEvent => ({
  type: 'MatchClaimed',
  data: { matchId, runnerId, attempt, leaseUntil },
});
const requeued = (attempt: number): ArenaEvent => ({
  type: 'MatchRequeued',
  data: { matchId, attempt, reason: 'The cell died.' },
});
const extended = (leaseUntil: string): ArenaEvent => ({ type: 'LeaseExtended', data: { ...attempt1, leaseUntil } });
const released: ArenaEvent = { type: 'MatchReleased', data: { ...attempt1, reason: 'The runner is stopping.' } };
const ranOut = (attempt: number, leaseUntil = at('12:01:00')): ArenaEvent => ({
  type: 'MatchRequeued',
  data: { matchId, attempt, reason: `The lease of runner runner-1 ran out at ${leaseUntil}.` },
});
const { seed: _seed, rakeBps: _rake, seats: _seats, ...money } = terms;
const parties = terms.seats.map(({ agentId, accountId }) => ({ agentId, accountId }));
type Reason = 'stake_refused' | 'runner_failed' | 'operator';
const voided = (reason: Reason, detail: string): ArenaEvent => ({
  type: 'MatchVoided',
  data: { ...money, reason, detail, seats: parties },
});
const settled = (rakeCents: string, scores: number[], payouts: string[]): ArenaEvent => ({
  type: 'MatchSettled',
  data: {
    ...money,
    potCents: '1000',
    rakeCents,
    seats: parties.map((party, i) => ({ ...party, score: scores[i] ?? 0, payoutCents: payouts[i] ?? '' })),
  },
});

const isReady = [proposed(), escrowed(0), escrowed(1), ready];
const isClaimed = [...isReady, claimed()];
const isSettled = [...isClaimed, settled('100', [1, 0], ['900', '0'])];
const isVoided = [proposed(), escrowed(0), voided('operator', 'by hand')];

describe('the priority of a match', () => {
  const first: ArenaEvent = { type: 'MatchReady', data: { matchId, priority: 2 } };

  it('is fixed with its terms and told when it is ready', () => {
    given([proposed({ priority: 2 }), escrowed(0)])
      .when(escrow(1))
      .then([escrowed(1), first]);
    const free = { priority: 2, stakeCents: '0' };
    given([])
      .when(propose(free))
      .then([proposed(free), first]);
  });
});

describe('proposing a match', () => {
  it('asks for the stakes', () => {
    given([]).when(propose()).then([proposed()]);
  });

  it('without a stake is ready at once', () => {
    given([])
      .when(propose({ stakeCents: '0' }))
      .then([proposed({ stakeCents: '0' }), ready]);
  });

  it('refuses an id that is taken, and an agent against itself', () => {
    given([proposed()]).when(propose()).thenRefused('ARENA.MATCH_EXISTS');
    given(isVoided).when(propose()).thenRefused('ARENA.MATCH_EXISTS');
    given([])
      .when(propose({ seats: [seat('ada'), seat('ada')] }))
      .thenRefused('ARENA.SAME_AGENT');
  });

  it('stakes nobody’s money but that of the agents’ owners', () => {
    given([])
      .when(propose({ seats: [seat('ada'), { ...seat('bob'), accountId: 'cyd' }] }))
      .thenRefused('ARENA.OTHER_OWNER');
  });

  it('lets two agents of one owner meet', () => {
    const seats = [seat('ada', 'one'), seat('ada', 'two')];
    given([])
      .when(propose({ seats }))
      .then([proposed({ seats })]);
  });

  it.each<[string, object]>([
    ['an id that is no UUID', { matchId: 'match-1' }],
    ['one seat', { seats: [seat('ada')] }],
    ['seventeen seats', { seats: Array.from({ length: 17 }, (_, i) => seat(`p${i}`)) }],
    ['a rake below five percent', { rakeBps: 499 }],
    ['a rake above fifteen percent', { rakeBps: 1501 }],
    ['a negative stake', { stakeCents: '-1' }],
    ['a stake whose pot would not fit an amount', { stakeCents: '9'.repeat(17) }],
    ['no game', { game: '' }],
    ['no seed', { seed: '' }],
  ])('does not understand %s', (_what, change) => {
    expect(() => propose(change)).toThrow(expect.objectContaining({ code: 'COMMAND.INVALID' }));
  });

  it('takes no stake that could not be settled', () => {
    const seats = Array.from({ length: 16 }, (_, i) => seat(`p${i}`));
    const highest = { stakeCents: '9'.repeat(16), seats };
    given([])
      .when(propose(highest))
      .then([proposed(highest)]);
    const scores = [1, ...Array<number>(15).fill(0)];
    const state = fold(arenaDecider, [proposed(highest), ready, claimed()]);
    const events = arenaDecider.decide(report({ outcome: { ...outcome, scores } }), state);
    expect(events.map((event) => checkedData(arenaEvents, event).data).at(-1)).toMatchObject({
      potCents: '159999999999999984',
      rakeCents: '15999999999999998',
    });
  });
});

describe('escrowing the stakes', () => {
  it('makes the match ready with the last one, in any order', () => {
    given([proposed()])
      .when(escrow(0))
      .then([escrowed(0)]);
    given([proposed(), escrowed(0)])
      .when(escrow(1))
      .then([escrowed(1), ready]);
    given([proposed(), escrowed(1)])
      .when(escrow(0))
      .then([escrowed(0), ready]);
  });

  it('waits for every seat of a large match', () => {
    const three = proposed({ seats: [seat('ada'), seat('bob'), seat('cyd')] });
    given([three, escrowed(0)])
      .when(escrow(2))
      .then([escrowed(2)]);
    given([three, escrowed(0), escrowed(2)])
      .when(escrow(1))
      .then([escrowed(1), ready]);
  });

  it('counts a seat once, and no seat that the match does not have', () => {
    given([proposed(), escrowed(0)])
      .when(escrow(0))
      .then([]);
    given([proposed(), escrowed(0)])
      .when(escrow(2))
      .then([]);
  });

  it.each([
    ['ready', isReady],
    ['claimed', isClaimed],
    ['settled', isSettled],
    ['voided', isVoided],
  ])('says nothing to a match that is %s', (_what, history) => {
    given(history).when(escrow(0)).then([]);
    given(history).when(refuse()).then([]);
  });

  it('gives the match up when a stake is refused', () => {
    given([proposed()])
      .when(refuse())
      .then([voided('stake_refused', 'too little')]);
    given([proposed(), escrowed(0)])
      .when(refuse())
      .then([voided('stake_refused', 'too little')]);
  });
});

describe('a match with somebody from outside', () => {
  const outside = [{ ...terms.seats[0], runtime: 'external' }, terms.seats[1]];
  const claimBy = (table: boolean) =>
    new ClaimMatch({ matchId, runnerId: 'runner-1', leaseMs: 60_000, table }, meta({ id: 'runner-1', role: 'runner' }));

  it("is played at the arena's table, and nothing else is", () => {
    const isReady = [proposed({ seats: outside }), ready];
    given(isReady).when(claimBy(true)).then([claimed()]);
    given(isReady).when(claimBy(false)).thenRefused('ARENA.NOT_FOR_YOU');
    given([proposed(), ready]).when(claimBy(true)).thenRefused('ARENA.NOT_FOR_YOU');
  });
});

describe('claiming a match', () => {
  it('leases it for an attempt', () => {
    given(isReady).when(claim()).then([claimed()]);
  });

  it('is refused while another runner holds the lease', () => {
    given(isClaimed)
      .when(claim('runner-2', at('12:00:59')))
      .thenRefused('ARENA.LEASED');
  });

  it('takes over when the lease has run out', () => {
    const next = claimed(2, 'runner-2', at('12:02:00'));
    given(isClaimed)
      .when(claim('runner-2', at('12:01:00')))
      .then([next]);
  });

  it('lets the same runner begin again: being stopped is not a failed attempt', () => {
    given(isClaimed)
      .when(claim('runner-1', at('12:00:30')))
      .then([claimed(1, 'runner-1', at('12:01:30'))]);
    const restarts = [...isReady, ...Array.from({ length: 5 }, () => claimed(1))];
    given(restarts)
      .when(claim('runner-1', at('12:00:30')))
      .then([claimed(1, 'runner-1', at('12:01:30'))]);
  });

  it('goes on counting after a failed attempt', () => {
    given([...isClaimed, requeued(1)])
      .when(claim())
      .then([claimed(2)]);
  });

  it('gives the match up after the last attempt', () => {
    const history = [...isReady, claimed(1), claimed(2), claimed(ATTEMPTS_MAX)];
    const late = claim('runner-2', at('13:00:00'));
    given(history)
      .when(late)
      .then([voided('runner_failed', '3 attempts did not finish.')]);
  });

  it.each([
    ['proposed', [proposed(), escrowed(0)]],
    ['settled', isSettled],
    ['voided', isVoided],
  ])('is refused for a match that is %s', (_what, history) => {
    given(history).when(claim()).thenRefused('ARENA.NOT_READY');
  });

  it.each([0, 999, 3_600_001])('does not understand a lease of %i ms', (leaseMs) => {
    const make = () => new ClaimMatch({ matchId, runnerId: 'r', leaseMs }, meta());
    expect(make).toThrow(expect.objectContaining({ code: 'COMMAND.INVALID' }));
  });
});

describe('keeping a lease', () => {
  it('extends it from the time of asking, and never shortens it', () => {
    given(isClaimed)
      .when(extend())
      .then([extended(at('12:01:30'))]);
    given([...isClaimed, extended(at('12:05:00'))])
      .when(extend())
      .then([]);
  });

  it('keeps others out for as long as it was extended', () => {
    const history = [...isClaimed, extended(at('12:05:00'))];
    given(history)
      .when(claim('runner-2', at('12:04:59')))
      .thenRefused('ARENA.LEASED');
    given(history)
      .when(expire(at('12:04:59')))
      .then([]);
    given(history)
      .when(expire(at('12:05:00')))
      .then([ranOut(1, at('12:05:00'))]);
  });

  it.each<[string, readonly ArenaEvent[], object]>([
    ['another runner', isClaimed, { runnerId: 'runner-2' }],
    ['another attempt', isClaimed, { attempt: 2 }],
    ['one that ran out', [...isClaimed, ranOut(1)], {}],
    ['a settled match', isSettled, {}],
  ])('is refused for %s', (_what, history, change) => {
    given(history).when(extend(change)).thenRefused('ARENA.LEASE_LOST');
    given(history).when(release(change)).thenRefused('ARENA.LEASE_LOST');
  });
});

describe('a lease that runs out', () => {
  it('puts the match back with the reason, but not before its time', () => {
    given(isClaimed)
      .when(expire(at('12:00:59')))
      .then([]);
    given(isClaimed)
      .when(expire())
      .then([ranOut(1)]);
  });

  it('gives the match up at the last attempt', () => {
    const history = [...isReady, claimed(ATTEMPTS_MAX)];
    given(history)
      .when(expire(at('12:01:00'), { attempt: ATTEMPTS_MAX }))
      .then([voided('runner_failed', `The lease of runner runner-1 ran out at ${at('12:01:00')}.`)]);
  });

  it.each<[string, readonly ArenaEvent[], object]>([
    ['another attempt', isClaimed, { attempt: 2 }],
    ['another runner', isClaimed, { runnerId: 'runner-2' }],
    ['a match that waits', [...isClaimed, ranOut(1)], {}],
    ['a settled match', isSettled, {}],
    ['a voided match', isVoided, {}],
  ])('says nothing to %s', (_what, history, change) => {
    given(history)
      .when(expire(at('13:00:00'), change))
      .then([]);
  });
});

describe('handing a match back', () => {
  it('costs no attempt, however often', () => {
    given(isClaimed).when(release()).then([released]);
    const often = Array.from({ length: 5 }, () => [claimed(1), released]).flat();
    given([...isReady, ...often])
      .when(claim())
      .then([claimed(1)]);
  });
});

describe('reporting a match', () => {
  const playedBy = (signed: { publicKey: string; signature: string } | null, result: object = {}): ArenaEvent => ({
    type: 'MatchPlayed',
    data: {
      matchId,
      runnerId: 'runner-1',
      attempt: 1,
      outcome: { ...outcome, ...result },
      execution: { ...execution, signed },
    },
  });
  const played = (result: object): ArenaEvent => playedBy(null, result);
  const turnsPlayed = turns.map((turn): ArenaEvent => ({ type: 'TurnPlayed', data: { matchId, ...turn } }));

  it('records every turn, the outcome and the money', () => {
    given(isClaimed)
      .when(report())
      .then([...turnsPlayed, played({}), settled('100', [1, 0], ['900', '0'])]);
  });

  const key = newSigningKey();
  const said = { ...attempt1, turns, outcome, execution };
  const signedWith = (text: string) => ({ publicKey: key.publicKey, signature: key.sign(text) });

  it('records who vouches for it, so that anyone can check', () => {
    const signed = signedWith(attemptText(terms, said));
    given(isClaimed)
      .when(report({ signed }))
      .then([...turnsPlayed, playedBy(signed), settled('100', [1, 0], ['900', '0'])]);
    expect(isAuthentic(terms, said, signed)).toBe(true);
  });

  it.each<[string, string]>([
    ['another outcome', attemptText(terms, { ...said, outcome: { ...outcome, detail: 'x' } })],
    ['another turn', attemptText(terms, { ...said, turns: turns.slice(1) })],
    ['another attempt', attemptText(terms, { ...said, attempt: 2 })],
    ['another seed', attemptText({ ...terms, seed: 'seed-2' }, said)],
    [
      'another agent',
      attemptText({ ...terms, seats: [seat('ada'), { ...seat('bob'), codeDigest: 'b'.repeat(64) }] }, said),
    ],
    ['something else', canonical({ ...said })],
  ])('is refused with a signature over %s', (_what, text) => {
    given(isClaimed)
      .when(report({ signed: signedWith(text) }))
      .thenRefused('ARENA.BAD_SIGNATURE');
  });

  it("is refused with another key's signature", () => {
    const signature = newSigningKey().sign(attemptText(terms, said));
    given(isClaimed)
      .when(report({ signed: { publicKey: key.publicKey, signature } }))
      .thenRefused('ARENA.BAD_SIGNATURE');
  });

  it('gives the stakes back on a draw', () => {
    const draw = { winner: null, scores: [0.5, 0.5], reason: 'full_board' };
    given(isClaimed)
      .when(report({ turns: [], outcome: { ...outcome, ...draw } }))
      .then([played(draw), settled('0', [0.5, 0.5], ['500', '500'])]);
  });

  it('divides the pot of many seats by their scores, and keeps whatever they played', () => {
    const names = ['ada', 'bob', 'cyd'];
    const seats = names.map((name) => seat(name));
    const scores = [45 / 100, 35 / 100, 20 / 100];
    const shared = { winner: 0, scores, reason: 'payoffs' };
    const moves = names.map((_, each) => ({ turn: each + 1, seat: each, action: ['C', 'D'], fuel: 0 }));
    given([proposed({ game: 'prisoners', seats }), escrowed(0), escrowed(1), escrowed(2), ready, claimed()])
      .when(report({ turns: moves, outcome: { ...outcome, ...shared } }))
      .then([
        ...moves.map((turn): ArenaEvent => ({ type: 'TurnPlayed', data: { matchId, ...turn } })),
        played(shared),
        {
          type: 'MatchSettled',
          data: {
            ...money,
            game: 'prisoners',
            potCents: '1500',
            rakeCents: '150',
            seats: ['608', '472', '270'].map((payoutCents, each) => ({
              agentId: `${names[each]}.bot`,
              accountId: names[each] ?? '',
              score: scores[each] ?? 0,
              payoutCents,
            })),
          },
        },
      ]);
  });

  it('is taken after the lease has run out, as long as nobody took over', () => {
    const history = [...isReady, claimed(1, 'runner-1', at('11:00:00'))];
    given(history)
      .when(report({ turns: [] }))
      .then([played({}), settled('100', [1, 0], ['900', '0'])]);
  });

  it.each<[string, readonly ArenaEvent[], object]>([
    ['another runner', isClaimed, { runnerId: 'runner-2' }],
    ['an earlier attempt', [...isClaimed, claimed(2)], { attempt: 1 }],
    ['an attempt to come', isClaimed, { attempt: 2 }],
    ['one that was failed', [...isClaimed, requeued(1)], {}],
    ['a match that was never claimed', isReady, {}],
    ['a settled match', isSettled, {}],
    ['a voided match', [...isClaimed, voided('operator', 'by hand')], {}],
  ])('is refused from %s', (_what, history, change) => {
    given(history).when(report(change)).thenRefused('ARENA.LEASE_LOST');
  });

  it.each([[[1]], [[1, 0, 0]], [[]]])('is refused with scores %j for two seats', (scores) => {
    given(isClaimed)
      .when(report({ outcome: { ...outcome, scores } }))
      .thenRefused('ARENA.BAD_OUTCOME');
  });

  it.each<[string, object]>([
    ['a winner without the best score', { outcome: { ...outcome, winner: 1 } }],
    ['a winner that has no seat', { outcome: { ...outcome, winner: 7 } }],
    ['scores that are more than there is to share', { outcome: { ...outcome, scores: [1, 0.5] } }],
    ['scores that leave a part to nobody', { outcome: { ...outcome, winner: null, scores: [0.4, 0.4] } }],
    ['a fault of nobody in the match', { outcome: { ...outcome, seatAtFault: 2 } }],
    ['a turn of nobody in the match', { turns: [{ turn: 1, seat: 2, action: 0, fuel: 1 }] }],
    ['a turn left out', { turns: [{ turn: 2, seat: 0, action: 0, fuel: 1 }] }],
    ['a turn told twice', { turns: [turns[0], turns[0]] }],
  ])('is refused with %s', (_what, change) => {
    given(isClaimed).when(report(change)).thenRefused('ARENA.BAD_OUTCOME');
  });

  it.each<[string, object]>([
    ['a score above one', { outcome: { ...outcome, scores: [2, 0] } }],
    ['a negative score', { outcome: { ...outcome, scores: [1, -1] } }],
    ['no reason', { outcome: { ...outcome, reason: '' } }],
    ['more than 500 turns', { turns: Array.from({ length: 501 }, () => turns[0]) }],
    ['an action that is no JSON', { turns: [{ ...turns[0], action: Number.NaN }] }],
    ['an action with no JSON inside', { turns: [{ ...turns[0], action: { cell: [1, new Date(0)] } }] }],
    ['a turn without an action', { turns: [{ turn: 1, seat: 0, fuel: 10 }] }],
    ['an attempt of 0', { attempt: 0 }],
  ])('does not understand %s', (_what, change) => {
    expect(() => report(change)).toThrow(expect.objectContaining({ code: 'COMMAND.INVALID' }));
  });
});

describe('failing an attempt', () => {
  it('puts the match back for another', () => {
    given(isClaimed)
      .when(fail())
      .then([requeued(1)]);
  });

  it('gives the match up at the last one', () => {
    const history = [...isReady, claimed(ATTEMPTS_MAX)];
    given(history)
      .when(fail(ATTEMPTS_MAX))
      .then([voided('runner_failed', 'The cell died.')]);
  });

  it.each<[string, readonly ArenaEvent[], Command]>([
    ['another runner', isClaimed, fail(1, 'runner-2')],
    ['another attempt', isClaimed, fail(2)],
    ['a match that is not claimed', isReady, fail()],
    ['a settled match', isSettled, fail()],
  ])('is refused from %s', (_what, history, command) => {
    given(history).when(command).thenRefused('ARENA.LEASE_LOST');
  });
});

describe('voiding a match', () => {
  it.each([
    ['proposed', [proposed(), escrowed(0)]],
    ['ready', isReady],
    ['claimed', isClaimed],
  ])('gives it up when it is %s', (_what, history) => {
    given(history)
      .when(cancel())
      .then([voided('operator', 'by hand')]);
  });

  it('does nothing twice, and nothing to a settled match', () => {
    given(isVoided).when(cancel()).then([]);
    given(isSettled).when(cancel()).thenRefused('ARENA.SETTLED');
  });

  it('is left to the arena when nobody takes it, until somebody does', () => {
    given(isReady)
      .when(abandon())
      .then([voided('runner_failed', 'no door')]);
    for (const history of [[proposed()], isClaimed, isVoided, isSettled]) given(history).when(abandon()).then([]);
  });
});

describe('a match that nobody comes for', () => {
  const noStakes = voided('stake_refused', 'What it needs was not held in 60 seconds.');
  const noRunner = voided('runner_failed', 'No runner took it in 60 seconds.');

  it('is voided when it has waited for too long for its stakes, or for a runner', () => {
    given([proposed(), escrowed(0)])
      .when(outwait('proposed'))
      .then([noStakes]);
    given(isReady).when(outwait('ready')).then([noRunner]);
    given([...isClaimed, requeued(1)])
      .when(outwait('ready', 1))
      .then([noRunner]);
  });

  it('is left alone when it has got on meanwhile', () => {
    given(isReady).when(outwait('proposed')).then([]);
    given([...isReady, claimed()])
      .when(outwait('ready'))
      .then([]);
    given([...isReady, claimed(), requeued(1)])
      .when(outwait('ready'))
      .then([]);
  });

  it('sends back a stake that comes when it is over, and only then', () => {
    const over = [proposed(), escrowed(0), noStakes];
    const data = { matchId, accountId: parties[1]?.accountId ?? '', held: 'stake', seat: 1 } as const;
    given(over)
      .when(escrow(1))
      .then([{ type: 'EscrowDeclined', data }]);
    given(over).when(escrow(0)).then([]);
    given(isReady).when(escrow(1)).then([]);
  });
});

describe('commands to a match', () => {
  it.each([escrow(0), refuse(), claim(), extend(), expire(), report(), fail(), release(), abandon(), cancel()])(
    '$type needs one that is known',
    (command) => {
      given([]).when(command).thenRefused('ARENA.UNKNOWN_MATCH');
    },
  );

  const staff: readonly Role[] = ['operator', 'admin', 'system'];
  const anySignature = { publicKey: 'a'.repeat(64), signature: 'b'.repeat(128) };
  const eve = (role: Role): Actor => ({ id: 'eve', role });
  it.each<[string, (actor: Actor) => Command, readonly Role[]]>([
    ['ProposeMatch', (actor) => propose({}, actor), staff],
    ['EscrowStake', (actor) => escrow(0, actor), ['system']],
    ['RefuseStake', (actor) => refuse('', actor), ['system']],
    ['ClaimMatch', (actor) => claim('eve', at('12:00:00'), actor), ['runner', 'system']],
    ['ExtendLease', (actor) => extend({ runnerId: 'eve' }, at('12:00:00'), actor), ['runner', 'system']],
    ['ExpireLease', (actor) => expire(at('12:00:00'), {}, actor), ['system']],
    ['ExpireMatch', (actor) => outwait('ready', 0, actor), ['system']],
    ['ReportMatch', (actor) => report({ runnerId: 'eve', signed: anySignature }, actor), ['runner', 'system']],
    ['ReportMatch unsigned', (actor) => report({ runnerId: 'eve' }, actor), ['system']],
    ['FailAttempt', (actor) => fail(1, 'eve', actor), ['runner', 'system']],
    ['ReleaseMatch', (actor) => release({ runnerId: 'eve' }, actor), ['runner', 'system']],
    ['AbandonMatch', (actor) => abandon(actor), ['system']],
    ['VoidMatch', (actor) => cancel(actor), staff],
  ])('%s is for some roles only', (_what, command, expected) => {
    expect(roles.filter((role) => allowed(command(eve(role)))).sort()).toEqual([...expected].sort());
  });

  it('no runner speaks for another', () => {
    const mallory: Actor = { id: 'mallory', role: 'runner' };
    const commands = [claim('runner-1', at('12:00:00'), mallory), extend({}, at('12:00:00'), mallory)];
    const more = [report({ signed: anySignature }, mallory), fail(1, 'runner-1', mallory), release({}, mallory)];
    expect([...commands, ...more].filter(allowed)).toEqual([]);
  });

  it("no owner stakes another one's money by proposing a match", () => {
    for (const id of ['ada', 'bob', 'eve']) expect(allowed(propose({}, { id, role: 'owner' }))).toBe(false);
  });

  it('stakes the money of whoever owns the agent, and of nobody else', () => {
    const seats = [seat('ada'), { ...seat('bob'), accountId: 'eve' }];
    expect(allowed(propose({ seats }, { id: 'op', role: 'operator' }))).toBe(false);
    expect(allowed(propose({ seats }, { id: 'agon', role: 'system' }))).toBe(false);
    expect(allowed(propose({}, { id: 'op', role: 'operator' }))).toBe(true);
  });
});

describe('a match with a bounty, a price and a window', () => {
  const bounty = { bountyId: 'b1', sponsorId: 'eve', amountCents: '301' };
  const extras = { bounty, computeCents: '3', disputeWindowMs: 86_400_000 };
  const fee = (number: number) => new EscrowCompute({ matchId, seat: number }, meta());
  const prize = new EscrowBounty({ matchId }, meta());
  const feeHeld = (number: number): ArenaEvent => ({ type: 'ComputeEscrowed', data: { matchId, seat: number } });
  const prizeHeld: ArenaEvent = { type: 'BountyEscrowed', data: { matchId } };
  const all = [proposed(extras), escrowed(0), feeHeld(0), escrowed(1), prizeHeld];
  const reverse = (actor?: Actor) => new ReverseMatch({ matchId, reason: 'replayed' }, meta(actor));

  it('is ready when everything is held, in whatever order it comes', () => {
    given(all)
      .when(fee(1))
      .then([feeHeld(1), ready]);
    given([proposed(extras), escrowed(0), feeHeld(0), escrowed(1), feeHeld(1)])
      .when(prize)
      .then([prizeHeld, ready]);
    given([proposed(extras)])
      .when(prize)
      .then([prizeHeld]);
    given(all).when(prize).then([]);
    given(all).when(fee(0)).then([]);
  });

  it('waits for a bounty alone, and for compute alone', () => {
    given([])
      .when(propose({ stakeCents: '0', bounty }))
      .then([proposed({ stakeCents: '0', bounty })]);
    given([proposed({ stakeCents: '0', bounty })])
      .when(prize)
      .then([prizeHeld, ready]);
    given([proposed({ stakeCents: '0', computeCents: '3' }), feeHeld(1)])
      .when(fee(0))
      .then([feeHeld(0), ready]);
  });

  it('does not take what it did not ask for', () => {
    given([proposed()]).when(prize).then([]);
    given([proposed()]).when(fee(0)).then([]);
    given([proposed(extras)])
      .when(fee(2))
      .then([]);
    given([proposed({ stakeCents: '0', bounty })])
      .when(escrow(0))
      .then([]);
  });

  it('fixes pot, rake, payouts, bounty and the end of the window in one event', () => {
    const events = arenaDecider.decide(report(), fold(arenaDecider, [...all, feeHeld(1), ready, claimed()]));
    expect(events.at(-1)).toEqual({
      type: 'MatchSettled',
      data: {
        ...money,
        potCents: '1000',
        rakeCents: '100',
        seats: [
          { ...parties[0], score: 1, payoutCents: '900', bountyCents: '301' },
          { ...parties[1], score: 0, payoutCents: '0' },
        ],
        bounty: { ...bounty, remainderCents: '0' },
        computeCents: '3',
        withdrawableAt: '2026-03-02T12:00:00.000Z',
      },
    });
  });

  it('tells in its void what has to go back', () => {
    const data = {
      ...money,
      reason: 'operator',
      detail: 'by hand',
      seats: parties,
      bounty,
      computeCents: '3',
    } as const;
    given(all)
      .when(cancel())
      .then([{ type: 'MatchVoided', data }]);
  });

  it.each(['0', '-1', '1.5'])('does not understand a bounty of %s', (amountCents) => {
    const make = () => propose({ bounty: { ...bounty, amountCents } });
    expect(make).toThrow(expect.objectContaining({ code: 'COMMAND.INVALID' }));
  });

  const mirror = settled('100', [1, 0], ['900', '0']);
  const reversed = { type: 'MatchReversed', data: { ...mirror.data, reason: 'replayed' } } as ArenaEvent;

  it('is reversed once, and only when it was settled', () => {
    given(isSettled).when(reverse()).then([reversed]);
    given([...isSettled, reversed])
      .when(reverse())
      .then([]);
    for (const history of [isReady, isClaimed, isVoided])
      given(history).when(reverse()).thenRefused('ARENA.NOT_SETTLED');
    given([]).when(reverse()).thenRefused('ARENA.UNKNOWN_MATCH');
  });

  it('is over for good once it is reversed', () => {
    const over = [...isSettled, reversed];
    given(over).when(cancel()).thenRefused('ARENA.SETTLED');
    given(over).when(claim()).thenRefused('ARENA.NOT_READY');
    given(over).when(report()).thenRefused('ARENA.LEASE_LOST');
  });

  it.each(roles)('by %s: only staff reverses', (role) => {
    expect(allowed(reverse({ id: 'x', role }))).toBe(['operator', 'admin', 'system'].includes(role));
  });
});
