import { type CommandMeta, derivedId, type Ids, newMeta, SYSTEM } from '../../services/kernel/index.js';
import { seatOf, wonBy } from '../harness/write-side.js';

/** Numbers in [0, 1) that depend only on the seed (mulberry32). */
export type Random = () => number;

export function seededRandom(...parts: readonly (string | number)[]): Random {
  let state = Number.parseInt(derivedId('random', ...parts).slice(0, 8), 16);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A whole number from `min` to `max`, both included. */
export const between = (random: Random, min: number, max: number) => min + Math.floor(random() * (max - min + 1));

/** A command as it travels from the writer to the one who checks. */
export interface SentCommand {
  readonly type: string;
  readonly data: unknown;
  readonly meta: CommandMeta;
}

const ACCOUNTS = 24;
const TURNS_MAX = 40;

type Events = Promise<readonly { readonly type: string }[]>;
type Send = (sent: SentCommand) => Events;
type Give = (type: string, data: unknown) => Events;

/** One errand of one writer: a few commands that build on each other, single events and long appends mixed. */
export async function errand(random: Random, ids: Ids, send: Send): Promise<void> {
  const command: Give = (type, data) => {
    return send({ type, data, meta: newMeta(SYSTEM, { ids }) });
  };
  const accountId = `player-${between(random, 1, ACCOUNTS)}`;
  const amountCents = `${between(random, 1, 500)}`;
  switch (between(random, 0, 2)) {
    case 0:
      await command('GrantCredits', { accountId, amountCents, currency: 'PLAY', reason: 'Weekly allowance' });
      return;
    case 1: {
      const holdId = ids();
      const purpose = { kind: 'other', note: 'A stake' };
      const events = await command('HoldFunds', { accountId, holdId, amountCents, currency: 'PLAY', purpose });
      const held = events[0]?.type === 'FundsHeld';
      if (held && random() < 0.6) await command('PostHold', { accountId, holdId, payoutCents: amountCents });
      else await command('VoidHold', { accountId, holdId });
      return;
    }
    default:
      await playMatch(random, ids(), command);
  }
}

async function playMatch(random: Random, matchId: string, command: Give): Promise<void> {
  const seats = ['player-1', 'player-2'].map((accountId) => seatOf(accountId));
  const terms = { matchId, game: 'connect-four', stakeCents: '0', currency: 'PLAY' };
  await command('ProposeMatch', { ...terms, seed: matchId, seats, rakeBps: 1000 });
  await command('ClaimMatch', { matchId, runnerId: 'runner-1', leaseMs: 60_000 });
  const turns = Array.from({ length: between(random, 1, TURNS_MAX) }, (_, i) => ({
    turn: i + 1,
    seat: i % 2,
    action: { column: between(random, 0, 6) },
    fuel: between(random, 500, 5_000),
  }));
  await command('ReportMatch', { matchId, runnerId: 'runner-1', attempt: 1, ...wonBy(0), turns });
}
