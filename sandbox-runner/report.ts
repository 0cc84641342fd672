import { reportText, runnerIdOf, type SigningKey } from '../services/kernel/index.js';
import type { SignedReport, WorkOrder } from './arena-port.js';
import type { MatchRecord } from './referee.js';

/** Puts a record into the words that the write side records, and signs them. */
export function signedReport(key: SigningKey, order: WorkOrder, record: MatchRecord): SignedReport {
  const { matchId, attempt, game, seed, codeDigests } = order;
  const runnerId = runnerIdOf(key.publicKey);
  const execution = { ...record, limits: { ...record.limits } };
  const { turns, outcome } = record;
  const text = reportText({ matchId, runnerId, attempt, game, seed, agents: codeDigests, turns, outcome, execution });
  return { text, signature: key.sign(text) };
}
