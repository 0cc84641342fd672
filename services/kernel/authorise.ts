import type { CommandClass } from './command.js';
import type { Context } from './context.js';
import type { Command } from './decider.js';
import { AgonError, invariant } from './errors.js';

/** The class that a command was made by, and what that declares. */
export const classOf = (command: Command) => command.constructor as unknown as CommandClass;

/** Refuses what this actor may not ask, as far as the command alone can tell, and says which stream it is about. */
export function authorise(context: Context, command: Command): string {
  const { spec } = classOf(command);
  invariant(spec?.type === command.type, `${command.type} was not made by its command class.`);
  if (!spec.allow(command.meta.actor, command.data)) forbid(context, command, '');
  const stream = spec.stream(command.data);
  if (stream.startsWith(context.streams) && stream[context.streams.length] === '-') return stream;
  throw new AgonError('INTERNAL.INVARIANT', `${command.type} of ${context.name} writes into ${stream}.`);
}

/** On a fold that may be old, a refusal is judged anew like any other, and a permission is checked by the append. */
export function assertAllowedGiven(context: Context, command: Command, state: unknown): void {
  const { spec } = classOf(command);
  if (spec.allowGiven && !spec.allowGiven(command.meta.actor, command.data, state)) {
    forbid(context, command, ' as it stands');
  }
}

function forbid({ name }: Context, { type, meta: { actor } }: Command, asItIs: string): never {
  throw new AgonError('AUTH.FORBIDDEN', `${actor.role} ${actor.id} may not ${type} in ${name}${asItIs}.`);
}
