import { playScenario } from '../ops/chaos/scenario.js';
import { seededRandom } from '../ops/chaos/workload.js';
import { accounts, RegisterOwner, RemoveMember, SetMember } from '../services/accounts/index.js';
import { MemoryEventStore } from '../services/adapters/store/memory.js';
import { agents, PublishVersion, SubmitAgent } from '../services/agents/index.js';
import { arena, ClaimMatch, FailAttempt, ProposeMatch, ReportMatch } from '../services/arena/index.js';
import {
  type Command,
  type Context,
  createHandle,
  derivedId,
  newMeta,
  type Policy,
  type RecordedEvent,
  runnerIdOf,
  SYSTEM,
} from '../services/kernel/index.js';
import { payments, RequestCheckout, TakeNotice } from '../services/payments/index.js';
import { RegisterRunner, runners } from '../services/runners/index.js';
import { GrantCredits, wallet } from '../services/wallet/index.js';

const contexts = [accounts, agents, wallet, arena, payments, runners];
const AT = '2026-01-01T00:00:00.000Z';
const DIGEST = 'a'.repeat(64);
const PUBLIC_KEY = 'c'.repeat(64);

/** Who wins changes from match to match, and every third is drawn. */
function reportOf(
  i: number,
  of: { matchId: string; runnerId: string; attempt: number },
): ConstructorParameters<typeof ReportMatch>[0] {
  const scores = [
    [1, 0],
    [0, 1],
    [0.5, 0.5],
  ][i % 3] as number[];
  const winner = scores[0] === 0.5 ? null : scores.indexOf(1);
  return {
    ...of,
    turns: [1, 2, 3].map((turn) => ({ turn, seat: (turn + 1) % 2, action: turn, fuel: turn })),
    outcome: { winner, scores, reason: 'line', detail: '', seatAtFault: null },
    execution: { driver: 'wasm', gameVersion: 1, limits: { turnFuel: 1 }, usage: [] },
  };
}

/** A small arena in memory, run to its end but for one match that nobody stakes on: every kind of event, made by the real deciders and policies. */
export async function playedHistory(matches = 24): Promise<readonly RecordedEvent[]> {
  const store = new MemoryEventStore();
  const handle = createHandle({ store });
  let commands = 0;
  const meta = () => newMeta(SYSTEM, { id: derivedId('history', commands++), clock: () => AT });
  const send = (context: Context, command: Command) => handle(context, command);
  const owners = ['ada', 'bob', 'cyd'];
  const code = { codeDigest: DIGEST, codeBytes: 10, runtime: 'javascript' as const };
  for (const accountId of owners) {
    await send(accounts, new RegisterOwner({ accountId, displayName: accountId.toUpperCase() }, meta()));
    // The last owner is poor, so that some stakes are refused and some matches voided.
    const amountCents = accountId === 'cyd' ? '150' : '100000';
    await send(wallet, new GrantCredits({ accountId, amountCents, currency: 'PLAY', reason: 'test' }, meta()));
    await send(agents, new SubmitAgent({ ownerId: accountId, name: 'bot', games: ['a', 'b'], ...code }, meta()));
  }
  await send(agents, new PublishVersion({ ownerId: 'ada', name: 'bot', ...code, codeDigest: 'b'.repeat(64) }, meta()));

  const runnerId = runnerIdOf(PUBLIC_KEY);
  await send(runners, new RegisterRunner({ runnerId, publicKey: PUBLIC_KEY }, meta()));

  const payment = { accountId: 'dee', paymentId: derivedId('history', 'payment') };
  const price = { amountCents: '5000', currency: 'USD' } as const;
  await send(payments, new RequestCheckout({ ...payment, order: { kind: 'deposit', ...price, clearingS: 0 } }, meta()));
  const told = [
    { kind: 'paid', ...payment, ...price, chargeId: 'pi_1' },
    { kind: 'payout-account', accountId: 'dee', payoutAccountId: 'acct_1', enabled: true, asOfS: 1 },
  ] as const;
  for (const notice of told) await send(payments, new TakeNotice({ accountId: 'dee', notice }, meta()));

  for (const memberId of ['ada', 'bob']) {
    await send(accounts, new SetMember({ accountId: 'cyd', memberId, role: 'member' }, meta()));
  }
  await send(accounts, new RemoveMember({ accountId: 'cyd', memberId: 'bob' }, meta()));

  let seen = 0;
  const react = async () => {
    const policies = contexts.flatMap((context) => context.policies ?? []) as Policy[];
    for (;;) {
      const [event] = await store.readAll({ after: seen, limit: 1 });
      if (!event) return;
      for (const policy of policies.filter(({ types }) => types.includes(event.type))) {
        for (const command of policy.react(event)) await handle(contextOf(command), command);
      }
      seen = event.position;
    }
  };
  const contextOf = (command: Command) =>
    contexts.find((context) => context.commands.some(({ spec }) => spec.type === command.type)) as Context;

  for (let i = 0; i <= matches; i++) {
    const matchId = derivedId('match', i);
    const pair = [owners[i % 3] as string, owners[(i + 1 + (i % 2)) % 3] as string];
    const seats = pair.map((accountId) => ({
      agentId: `${accountId}.bot`,
      accountId,
      version: 1,
      codeDigest: DIGEST,
      runtime: 'javascript' as const,
    }));
    const stakeCents = i % 7 === 0 || i === matches ? '0' : '100';
    const terms = { matchId, game: i % 2 ? 'a' : 'b', stakeCents, currency: 'PLAY', seed: `${i}`, seats, rakeBps: 700 };
    await send(arena, new ProposeMatch(terms, meta()));
    await react();
    const claim = () => send(arena, new ClaimMatch({ matchId, runnerId, leaseMs: 60_000 }, meta()));
    const claimed = await claim().catch(() => undefined);
    if (!claimed || i === matches) continue;
    let attempt = 1;
    if (i % 5 === 0) {
      await send(arena, new FailAttempt({ matchId, runnerId, attempt, reason: 'cell died' }, meta()));
      await claim();
      attempt = 2;
    }
    await send(arena, new ReportMatch(reportOf(i, { matchId, runnerId, attempt }), meta()));
    await react();
  }
  return store.readAll({});
}

/**
 * Two chapters of an arena's life, in which everything happens that views react to. Deciders of today void no match that
 * is settled; boards would take it back all the same, so one such event is put there by hand.
 */
export async function wholeHistory(): Promise<readonly RecordedEvent[]> {
  const store = new MemoryEventStore();
  for (const name of ['one', 'two']) {
    await playScenario(store, { name, random: seededRandom('history', name), matches: 24 });
  }
  const log = await store.readAll({ limit: 10_000 });
  const reversed = new Set(log.filter(({ type }) => type === 'MatchReversed').map(({ stream }) => stream));
  const settled = log.filter(({ type, stream }) => type === 'MatchSettled' && !reversed.has(stream));
  const last = log.at(-1) as RecordedEvent;
  const voided = reversalOf(settled[1] as RecordedEvent, 'MatchVoided');
  return [...log, { ...voided, position: last.position + 1, time: last.time }];
}

/** The same history over months instead of a moment, with some settled matches taken back later on. */
export function longHistory(history: readonly RecordedEvent[]): RecordedEvent[] {
  const events: RecordedEvent[] = [];
  const due: RecordedEvent[] = [];
  let settled = 0;
  for (const event of history) {
    events.push(event);
    if (event.type === 'MatchSettled' && settled++ % 4 === 1) due.push(reversalOf(event, 'MatchReversed'));
    // Some at once, so that both are in one batch, and some long after.
    if (due.length > 0 && (settled % 8 === 2 || due.length > 2)) events.push(due.shift() as RecordedEvent);
  }
  return renumbered([...events, ...due]);
}

/** As the decider writes it: the settlement once more, less what is not taken back. */
export function reversalOf(settled: RecordedEvent, type: 'MatchVoided' | 'MatchReversed'): RecordedEvent {
  const { withdrawableAt: _window, computeCents: _compute, ...settlement } = settled.data as Record<string, unknown>;
  const { matchId, game, stakeCents, currency, seats } = settlement;
  const parties = (seats as { agentId: string; accountId: string }[]).map(({ agentId, accountId }) => {
    return { agentId, accountId };
  });
  const why = { reason: 'operator', detail: 'It counts no more.' };
  const voided = { matchId, game, stakeCents, currency, seats: parties, ...why };
  return {
    ...settled,
    id: derivedId(settled.id, type),
    type,
    version: 1,
    revision: settled.revision + 1,
    data: type === 'MatchVoided' ? voided : { ...settlement, reason: 'It counts no more.' },
  };
}

/** Positions without gaps, and eight hours between events. */
export const renumbered = (events: readonly RecordedEvent[]): RecordedEvent[] =>
  events.map((event, i) => ({
    ...event,
    position: i + 1,
    time: new Date(Date.parse(AT) + i * 8 * 3_600_000).toISOString(),
  }));
