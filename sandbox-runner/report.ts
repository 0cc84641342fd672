import { canonical, runnerIdOf, type SigningKey } from '../services/kernel/index.js';
import type { SignedReport, WorkOrder } from './arena-port.js';
import type { MatchRecord } from './referee.js';

/** Puts a record into the words that the write side records, and signs them. */
export function signedReport(key: SigningKey, order: WorkOrder, record: MatchRecord): SignedReport {
  const { matchId, attempt, game, seed, codeDigests } = order;
  const { turns, outcome, driver, gameVersion, limits, usage, deterministic } = record;
  const text = canonical({
    kind: 'agon.match-report.v1',
    matchId,
    runnerId: runnerIdOf(key.publicKey),
    attempt,
    game,
    seed,
    agents: codeDigests,
    turns: turns.map(({ turn, seat, action, fuel }) => ({ turn, seat, action, fuel })),
    outcome,
    execution: { driver, gameVersion, limits: { ...limits }, usage, deterministic },
  });
  return { text, signature: key.sign(text) };
}
