import { z } from 'zod';
import { compiled } from './catalogue.js';
import type { Cause } from './cause.js';
import { type ChosenField, chosenIn } from './chosen.js';
import type { Command, CommandMeta } from './decider.js';
import { AgonError } from './errors.js';
import { type Actor, type MemberRole, memberRoles } from './event.js';
import { type Clock, type Ids, randomIds, systemClock } from './ids.js';

export interface CommandSpec<Type extends string, Schema extends z.ZodType, State> {
  readonly type: Type;
  readonly data: Schema;
  /** The stream that the command is decided on. */
  stream(data: z.output<Schema>): string;
  /** Who may ask, as far as the command alone can tell: judged before anything is read. */
  allow(actor: Actor, data: z.output<Schema>): boolean;
  /** Who of those may ask as the stream stands: judged on every fold that the command is decided on. */
  allowGiven?(actor: Actor, data: z.output<Schema>, state: State): boolean;
}

/** Any command class, whatever its data. */
export interface CommandClass {
  readonly spec: {
    readonly type: string;
    readonly data: z.ZodType;
    stream(data: unknown): string;
    allow(actor: Actor, data: unknown): boolean;
    allowGiven?(actor: Actor, data: unknown, state: unknown): boolean;
  };
  /** The fields that people choose, by the declaration of its data. */
  readonly chosen: readonly ChosenField[];
  new (data: never, meta: CommandMeta): Command;
}

/**
 * Makes a command class: @nestjs/cqrs routes by class, deciders switch on `type`. Constructing one checks the input,
 * so that a command in hand is always well formed.
 *
 * @example
 * export class Add extends defineCommand({
 *   type: 'Add',
 *   data: z.object({ counterId: z.string(), by: z.int() }),
 *   stream: (data) => `counter-${data.counterId}`,
 *   allow: (actor) => actor.role === 'operator',
 * }) {}
 */
export function defineCommand<const Type extends string, Schema extends z.ZodType, State = unknown>(
  spec: CommandSpec<Type, Schema, State>,
) {
  return class {
    static readonly spec = spec;
    static readonly chosen = chosenIn(spec.data);
    // Set in the constructor and not defined before: commands are made often, and their classes share this code.
    declare readonly type: Type;
    declare readonly data: z.output<Schema>;
    declare readonly meta: CommandMeta;

    constructor(data: z.input<Schema>, meta: CommandMeta) {
      const parsed = compiled(spec.data).safeParse(data);
      if (!parsed.success) {
        const fields = parsed.error.issues.map((issue) => ({ field: issue.path.join('.'), message: issue.message }));
        const first = fields[0];
        const where = first?.field ? `${first.field}: ` : '';
        throw new AgonError('COMMAND.INVALID', `${spec.type} was not understood. ${where}${first?.message}`, {
          fields,
        });
      }
      this.type = spec.type;
      this.data = parsed.data;
      this.meta = meta;
    }
  };
}

/**
 * Declares commands of which many are about the same stream and are for the same people to ask.
 *
 * @example
 * const byStaff = commandsOn((data: { counterId: string }) => `counter-${data.counterId}`, isStaff);
 * export class Add extends byStaff('Add', z.object({ counterId: z.string(), by: z.int() })) {}
 */
export const commandsOn =
  <Data>(stream: (data: Data) => string, allow: (actor: Actor, data: Data) => boolean) =>
  <const Type extends string, Schema extends z.ZodType<Data>>(type: Type, data: Schema) =>
    defineCommand({ type, data, stream, allow });

/** The union of the commands that a module declares. */
export type CommandOf<Module> = InstanceType<
  Extract<Module[keyof Module], new (data: never, meta: CommandMeta) => Command>
>;

export const SYSTEM: Actor = { id: 'agon', role: 'system' };

/** The meta of a command that starts something: it correlates with itself, unless it is said what it follows from. */
export function newMeta(
  actor: Actor,
  options: { id?: string; ids?: Ids; clock?: Clock; cause?: Cause | undefined } = {},
): CommandMeta {
  const id = options.id ?? (options.ids ?? randomIds)();
  const { correlationId = id, causationId = id } = options.cause ?? {};
  return { id, actor, time: (options.clock ?? systemClock)(), correlationId, causationId };
}

/** The arena itself. */
export const isSystem = (actor: Actor): boolean => actor.role === 'system';

/** Those who run the arena, and the arena itself. */
export const isStaff = (actor: Actor): boolean =>
  actor.role === 'operator' || actor.role === 'admin' || isSystem(actor);

/** Staff, the owner of this very account, or a member of this organisation with enough to say in it. */
export const actsFor = (actor: Actor, accountId: string, atLeast: MemberRole = 'member'): boolean =>
  isStaff(actor) ||
  (actor.role === 'owner' && actor.id === accountId) ||
  rankOf(actor.memberOf?.[accountId]) >= rankOf(atLeast);

/** Whoever acts for an account, and those who may look and not touch. */
export const mayRead = (actor: Actor, accountId: string): boolean =>
  actor.role === 'auditor' || actsFor(actor, accountId, 'auditor');

const rankOf = (role: MemberRole | undefined) => (role === undefined ? -1 : memberRoles.indexOf(role));

/** Names that people choose and type: they are part of stream names and addresses. */
export const slug = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?$/, 'must be 1 to 39 of a-z, 0-9 and -, not starting or ending with -');

/** An agent's id begins with its owner's: whose it is needs no look at a read model. */
export const ownerOf = (agentId: string): string => agentId.split('.')[0] ?? '';

/**
 * Words that people write. Control characters and broken Unicode are refused: databases and terminals cannot take them,
 * and what is once in the log stays there.
 */
export const text = (lengthMax: number, lengthMin = 0) => readable(z.string().min(lengthMin).max(lengthMax));

export const readable = (schema: z.ZodString) =>
  schema.refine((value) => value.isWellFormed() && !/\p{Cc}/u.test(value), 'must not hold control characters');
