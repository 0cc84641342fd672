import type { Actor } from './event.js';

/** What a decider emits: a fact without its envelope. */
export interface DomainEvent<Type extends string = string, Data = unknown> {
  readonly type: Type;
  readonly data: Data;
}

/**
 * Where a command comes from. Everything that a decision may depend on besides its state travels in the command, so
 * that `decide` needs no clock, no randomness and no I/O.
 */
export interface CommandMeta {
  /** The idempotency key: the same id with the same data is carried out once, however often it is sent. */
  readonly id: string;
  readonly actor: Actor;
  /** ISO 8601, from the caller's clock. */
  readonly time: string;
  readonly correlationId: string;
  readonly causationId: string;
}

export interface Command<Type extends string = string, Data = unknown> {
  readonly type: Type;
  readonly data: Data;
  readonly meta: CommandMeta;
}

/**
 * A context's behaviour, pure.
 *
 * @example
 * const counter: Decider<number, Add, Added> = {
 *   initial: 0,
 *   decide: (command) => [{ type: 'Added', data: { by: command.data.by } }],
 *   evolve: (state, event) => state + event.data.by,
 * };
 */
export interface Decider<State, C extends Command, E extends DomainEvent> {
  readonly initial: State;
  decide(command: C, state: State): readonly E[];
  evolve(state: State, event: E): State;
}

/** The state after these events. */
export function fold<State, E extends DomainEvent>(
  decider: { initial: State; evolve(state: State, event: E): State },
  events: Iterable<E>,
  from: State = decider.initial,
): State {
  let state = from;
  for (const event of events) state = decider.evolve(state, event);
  return state;
}
