import type { Mutant } from './mutant.js';

/** Faults of the processes of a cluster, and of what they share. */
export const clusterMutants: readonly Mutant[] = [
  {
    name: 'call a process ready that stands by in trouble',
    file: 'ops/processes/frame.ts',
    find: 'if (still !== undefined) throw',
    replace: 'if (false) throw',
    specs: 'ops/processes/frame.spec.ts',
  },
  {
    name: 'keep the door open when another process has the queue',
    file: 'ops/processes/doors.ts',
    find: 'while (isActive()) await beat();',
    replace: 'for (;;) await beat();',
    specs: 'ops/processes/doors',
  },
  {
    name: 'keep matches that ended while another process had the queue',
    file: 'services/arena/work.ts',
    find: 'this.open.clear();',
    replace: '',
    specs: 'services/arena/work ops/processes/doors',
  },
  {
    name: 'open the door before everything was heard',
    file: 'ops/processes/doors.ts',
    find: 'while (!isActive() || work.heard() < known) await beat();',
    replace: 'while (!isActive()) await beat();',
    specs: 'ops/processes/doors',
  },
  {
    name: 'give up a match that somebody plays',
    file: 'services/arena/decider.ts',
    find: "return state.status === 'ready' ? [voided(state, 'runner_failed', command.data.detail)] : [];",
    replace: "return [voided(state, 'runner_failed', command.data.detail)];",
    specs: 'services/arena/arena',
  },
  {
    name: 'count who stands by as behind',
    file: 'ops/embedded/gauges.ts',
    find: 'const active = [...consumers].filter(([, consumer]) => consumer.active?.() !== false);',
    replace: 'const active = [...consumers];',
    specs: 'ops/embedded/metrics',
  },
  {
    name: 'let every process migrate at once',
    file: 'projections/sinks/database.ts',
    find: "await holder.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);",
    replace: '',
    specs: 'projections/sinks/postgres',
  },
  {
    name: 'keep the lock of migrations',
    file: 'projections/sinks/database.ts',
    find: "await holder.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]);",
    replace: '',
    specs: 'projections/sinks/postgres',
  },
  {
    name: 'go on with the next events when the rows have lost some',
    file: 'projections/engine/projector.ts',
    find: 'if (heard !== undefined && from < heard) {',
    replace: 'if (heard === -1) {',
    specs: 'projections/engine/projector',
  },
  {
    name: 'take a change into boards that have missed one before',
    file: 'projections/leaderboards/hot.ts',
    find: 'if (this.at.position < from) throw boardsBehind(from);',
    replace: '',
    specs: 'projections/leaderboards/hot',
  },
  {
    name: 'leave boards that have missed a change as they are',
    file: 'projections/leaderboards/hot.ts',
    find: "if (!isAgonError(error, 'BOARDS.BEHIND')) throw error;\n      await this.refill();",
    replace: '',
    specs: 'projections/leaderboards/hot',
  },
  {
    name: 'register a revoked key again',
    file: 'gateway/grpc/desk.ts',
    find: "meta(derivedId('register', runnerId, revision))",
    replace: "meta(derivedId('register', runnerId))",
    specs: 'gateway/grpc/grpc',
  },
];
