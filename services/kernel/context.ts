import type { Catalogue } from './catalogue.js';
import type { CommandClass } from './command.js';
import type { Command, Decider, DomainEvent } from './decider.js';
import type { Policy } from './policy.js';

/** Everything the write side knows about one bounded context. */
export interface Context<State = unknown, C extends Command = Command, E extends DomainEvent = DomainEvent> {
  readonly name: string;
  /** What the names of its streams begin with, before the dash. Only this context writes into them. */
  readonly streams: string;
  readonly events: Catalogue;
  readonly decider: Decider<State, C, E>;
  readonly commands: readonly CommandClass[];
  readonly policies?: readonly Policy[];
}

/** A context among others, whose commands and events only it knows, and which still says what its states are. */
export type ContextOf<State> = Context & { readonly decider: { readonly initial: State } };

/**
 * Declares a context, checked against its own types, and forgets them so that one list can hold all contexts. Its commands
 * are those that a module declares, whatever else stands there.
 */
export const defineContext = <State, C extends Command, E extends DomainEvent>(
  context: Omit<Context<State, C, E>, 'commands'> & { readonly commands: object },
) => ({ ...context, commands: Object.values(context.commands).filter(isCommandClass) }) as unknown as ContextOf<State>;

const isCommandClass = (value: unknown): value is CommandClass => typeof value === 'function' && 'spec' in value;
