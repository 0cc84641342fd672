import type { ArenaPort, WorkOrder } from '../../sandbox-runner/index.js';
import { type ArenaEvent, ClaimMatch, FailAttempt, ReportMatch } from '../../services/arena/index.js';
import {
  type Actor,
  type Clock,
  type Command,
  type CommandMeta,
  derivedId,
  type EventStore,
  type Handled,
  invariant,
  isAgonError,
} from '../../services/kernel/index.js';

const LEASE_MS = 120_000;

/** The write side for a runner in the same process. Command ids name the attempt, so a repeated report is harmless. */
export function localArena(options: {
  runnerId: string;
  store: EventStore;
  clock: Clock;
  execute: (command: Command) => Promise<Handled>;
}): ArenaPort {
  const { runnerId, store, clock, execute } = options;
  const actor: Actor = { id: runnerId, role: 'runner' };
  const meta = (id: string): CommandMeta => ({ id, actor, time: clock(), correlationId: id, causationId: id });

  return {
    async claim(matchId): Promise<WorkOrder | undefined> {
      try {
        const head = await store.head(`match-${matchId}`);
        const id = derivedId(matchId, 'claim', head?.revision ?? 0);
        const { events } = await execute(new ClaimMatch({ matchId, runnerId, leaseMs: LEASE_MS }, meta(id)));
        const claimed = (events as readonly ArenaEvent[]).find((event) => event.type === 'MatchClaimed');
        if (!claimed) return undefined;
        const [first] = (await store.readStream(`match-${matchId}`, { limit: 1 })) as readonly ArenaEvent[];
        invariant(first?.type === 'MatchProposed', `match-${matchId} starts with its proposal.`);
        const { game, seed, seats } = first.data;
        return {
          matchId,
          attempt: claimed.data.attempt,
          game,
          seed,
          codeDigests: seats.map((seat) => seat.codeDigest),
        };
      } catch (error) {
        if (isAgonError(error, 'ARENA.NOT_READY')) return undefined;
        throw error;
      }
    },

    async report({ matchId, attempt }, record) {
      const { turns, outcome, driver, gameVersion, limits, usage } = record;
      const execution = { driver, gameVersion, limits: { ...limits }, usage: [...usage] };
      const data = {
        matchId,
        runnerId,
        attempt,
        turns: [...turns],
        outcome: { ...outcome, scores: [...outcome.scores] },
        execution,
      };
      await execute(new ReportMatch(data, meta(derivedId(matchId, 'report', attempt))));
    },

    async fail({ matchId, attempt }, reason) {
      await execute(new FailAttempt({ matchId, runnerId, attempt, reason }, meta(derivedId(matchId, 'fail', attempt))));
    },
  };
}
