import type { Mutant } from './mutant.js';

export const viewsMutants: readonly Mutant[] = [
  {
    name: 'take in an event twice',
    file: 'projections/engine/projector.ts',
    find: 'let last = from;',
    replace: 'let last = 0;',
    specs: 'projections/engine',
  },
  {
    name: 'take in what comes after a gap',
    file: 'projections/engine/projector.ts',
    find: 'for (let next = this.held.get(from + 1); next; next = this.held.get(next.position + 1)) run.push(next);',
    replace: 'for (const next of this.held.values()) run.push(next);',
    specs: 'projections/engine',
  },
  {
    name: 'leave half of a failed event in the rows',
    file: 'projections/engine/view.ts',
    find: 'for (const [held, text, before] of this.journal.reverse()) {',
    replace: 'for (const [held, text, before] of this.journal.slice(0, 0)) {',
    specs: 'projections/engine',
  },
  {
    name: 'swap in a build that is behind',
    file: 'projections/sinks/shadow.ts',
    find: 'if (!built || Number(built.position) < Number(served?.position ?? 0)) {',
    replace: 'if (!built) {',
    specs: 'projections/sinks/postgres',
  },
  {
    name: 'move a checkpoint that somebody else has moved',
    file: 'projections/sinks/postgres.ts',
    find: 'WHERE view = $1 AND position = $3 AND version = $4',
    replace: 'WHERE view = $1 AND $3::int8 IS NOT NULL AND version = $4',
    specs: 'projections/sinks/postgres',
  },
  {
    name: 'keep what a match did that was taken back',
    file: 'projections/leaderboards/view.ts',
    find: 'filter((each) => each.matchId !== matchId)',
    replace: "filter((each) => each.matchId !== '')",
    specs: 'projections/leaderboards/board',
  },
  {
    name: 'let hot boards be moved by a replay',
    file: 'projections/leaderboards/hot.ts',
    find: 'if (position <= this.at) return false;',
    replace: '',
    specs: 'projections/leaderboards/hot',
  },
  {
    name: 'stay certain of who does not play',
    file: 'projections/leaderboards/glicko2.ts',
    find: 'phi * phi + periods * player.volatility ** 2',
    replace: 'phi * phi',
    specs: 'projections/leaderboards/glicko2',
  },
  {
    name: 'rate newcomers like veterans',
    file: 'projections/leaderboards/elo.ts',
    find: 'gamesPlayed < PROVISIONAL_GAMES ? 32 : 16',
    replace: 'gamesPlayed < 0 ? 32 : 16',
    specs: 'projections/leaderboards',
  },
  {
    name: 'take anybody for a runner',
    file: 'gateway/grpc/server.ts',
    find: "if (actor?.role !== 'runner') {",
    replace: 'if (actor === null) {',
    specs: 'gateway/grpc',
  },
];
