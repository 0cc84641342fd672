export type { ActionRefused, Match, MatchResult, MatchStarted } from '../../proto/gen/agon/arena/v1/arena.js';
export { Arena, type ArenaOptions, type QueueRequest } from './arena.js';
export { ArenaError } from './errors.js';
export type { Actions, Choice, GameName, LeducBoard, LeducMove, Mark, Observations } from './games.js';
export { Decision, type PlayOptions, play, type Turn } from './player.js';
export { type PracticeOptions, type Practised, practise } from './practice.js';
