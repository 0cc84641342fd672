import { hash as digest } from 'node:crypto';
import { canonical } from './canonical.js';
import { type Catalogue, checkedData, type Upcaster, upcasterOf } from './catalogue.js';
import type { CommandClass } from './command.js';
import type { Command, Decider, DomainEvent } from './decider.js';
import { AgonError, invariant, isAgonError } from './errors.js';
import { EMPTY_HEAD, type RecordedEvent, type SealedEvent, type StreamHead, seal } from './event.js';
import { derivedId } from './ids.js';
import type { Policy } from './policy.js';
import { type EventStore, storeLimits } from './ports.js';

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

/** Declares a context, checked against its own types, and forgets them so that one list can hold all contexts. */
export const defineContext = <State, C extends Command, E extends DomainEvent>(context: Context<State, C, E>) =>
  context as unknown as Context;

export interface Handled {
  readonly stream: string;
  readonly revision: number;
  /** Position of the command's last event; 0 when it had nothing to add. */
  readonly position: number;
  readonly events: readonly DomainEvent[];
  /** True when this command id had been carried out before and nothing was written now. */
  readonly repeated: boolean;
}

export type Handle = (context: Context, command: Command) => Promise<Handled>;

export interface HandleOptions {
  readonly store: EventStore;
  /** Streams kept folded in memory. */
  readonly cachedStreamsMax?: number;
  /** Decisions on one command before a contended stream gives up. */
  readonly attemptsMax?: number;
  readonly onHandled?: (
    command: Command,
    outcome: 'appended' | 'unchanged' | 'repeated' | 'refused',
    ms: number,
  ) => void;
  /** Hears of each append once it is durable. */
  readonly onAppended?: ((command: Command, events: readonly SealedEvent[], ms: number) => void) | undefined;
}

interface Done {
  readonly inputHash: string;
  readonly firstRevision: number;
  readonly revision: number;
  readonly position: number;
}

/** Who waits for a turn on a stream. */
type Turns = (() => void)[];

interface Folded {
  state: unknown;
  head: StreamHead;
  /** What each command did here, which is what makes a repeated one harmless. */
  readonly done: Map<string, Done>;
}

/**
 * Makes the only write path: authorise → load (cached fold, then only what is newer) → decide → append at the expected
 * revision → on conflict reload and decide again, a bounded number of times. Commands to one stream queue behind each
 * other instead of colliding.
 *
 * @example
 * const handle = createHandle({ store });
 * const welcome = { accountId: 'ada', amountCents: '1000', currency: 'PLAY', reason: 'welcome' };
 * await handle(wallet, new GrantCredits(welcome, newMeta(SYSTEM)));
 */
export function createHandle(options: HandleOptions): Handle {
  const { store, cachedStreamsMax = 20_000, attemptsMax = 10, onHandled, onAppended } = options;
  const folded = new Map<string, Folded>();
  /** Streams with a command at work, and the commands that wait for their turn on them. */
  const busy = new Map<string, Turns>();
  const upcasters = new Map<Context, Upcaster>();

  const handle: Handle = (context, command) => {
    let stream: string;
    try {
      stream = authorise(context, command);
    } catch (error) {
      return Promise.reject(error);
    }
    const ahead = busy.get(stream);
    if (ahead) {
      const turn = new Promise<void>((resolve) => ahead.push(resolve));
      return turn.then(() => decideAndAppend(context, command, stream, ahead));
    }
    const queue: Turns = [];
    busy.set(stream, queue);
    return decideAndAppend(context, command, stream, queue);
  };
  return onHandled ? observed(handle, onHandled) : handle;

  /** Does all of it in the command's turn on the stream, in one promise: there are as many of these as commands. */
  async function decideAndAppend(context: Context, command: Command, stream: string, queue: Turns): Promise<Handled> {
    try {
      const inputText = canonical(command.data);
      const inputHash = digest('sha256', inputText);
      let current = folded.get(stream);
      // A fold from the cache may be behind another process. It is good enough to try an append with, because the store
      // checks the revision; it is not good enough to refuse with, so a refusal is only final on a fresh one.
      let fresh = false;
      if (!current) {
        current = await refresh(context, stream, { state: context.decider.initial, head: EMPTY_HEAD, done: new Map() });
        fresh = true;
      }
      for (let attempt = 1; attempt <= attemptsMax; attempt++) {
        const before = current.done.get(command.meta.id);
        if (before) return repeat(context, stream, command, before, inputHash);
        let events: readonly DomainEvent[];
        try {
          events = context.decider.decide(command, current.state);
          if (events.length === 0 && !fresh) throw STALE;
        } catch (error) {
          if (fresh) throw error;
          const revision: number = current.head.revision;
          current = await refresh(context, stream, current);
          fresh = true;
          if (current.head.revision === revision && error !== STALE) throw error;
          continue;
        }
        if (events.length === 0)
          return { stream, revision: current.head.revision, position: 0, events, repeated: false };
        const sealed = sealAll(context, command, stream, current.head, events, inputText, inputHash);
        const startedMs = onAppended ? performance.now() : 0;
        try {
          const { revision, position } = await store.append(stream, current.head.revision, sealed);
          remember(context, current, sealed, position, inputHash, command.meta.id);
          onAppended?.(command, sealed, performance.now() - startedMs);
          return { stream, revision, position, events, repeated: false };
        } catch (error) {
          if (!isAgonError(error, 'STORE.REVISION_CONFLICT')) throw error;
          current = await refresh(context, stream, current);
          fresh = true;
        }
      }
      throw new AgonError(
        'COMMAND.CONTENDED',
        `${stream} changed under ${command.type} ${attemptsMax} times in a row. Send it again with the same id.`,
      );
    } finally {
      const next = queue.shift();
      if (next) next();
      else busy.delete(stream);
    }
  }

  /** Folds what the store holds beyond this state, and keeps the result. */
  async function refresh(context: Context, stream: string, from: Folded): Promise<Folded> {
    const upcast = upcasterFor(context);
    for (;;) {
      const page = await store.readStream(stream, { fromRevision: from.head.revision + 1 });
      for (const event of page) absorb(context, from, upcast(event), event);
      if (page.length < storeLimits.pageEventsMax) break;
    }
    folded.delete(stream);
    folded.set(stream, from);
    if (folded.size > cachedStreamsMax) folded.delete(folded.keys().next().value as string);
    return from;
  }

  function absorb(context: Context, into: Folded, event: DomainEvent, recorded: RecordedEvent): void {
    into.state = context.decider.evolve(into.state, event);
    into.head = { revision: recorded.revision, hash: recorded.hash };
    const { commandId, inputHash } = recorded.meta;
    const { revision, position } = recorded;
    const firstRevision = into.done.get(commandId)?.firstRevision ?? revision;
    into.done.set(commandId, { inputHash, firstRevision, revision, position });
  }

  function remember(
    context: Context,
    into: Folded,
    sealed: readonly SealedEvent[],
    position: number,
    inputHash: string,
    commandId: string,
  ): void {
    for (const event of sealed) into.state = context.decider.evolve(into.state, event);
    const last = sealed.at(-1);
    invariant(last, 'An append holds at least one event.');
    const firstRevision = into.head.revision + 1;
    into.head = { revision: last.revision, hash: last.hash };
    into.done.set(commandId, { inputHash, firstRevision, revision: last.revision, position });
  }

  async function repeat(
    context: Context,
    stream: string,
    command: Command,
    before: Done,
    inputHash: string,
  ): Promise<Handled> {
    if (before.inputHash !== inputHash) {
      throw new AgonError(
        'COMMAND.KEY_REUSED',
        `Command id ${command.meta.id} was used before with another input. Use a new id for a new request.`,
        { commandId: command.meta.id },
      );
    }
    const { firstRevision, revision, position } = before;
    const limit = revision - firstRevision + 1;
    const recorded = await store.readStream(stream, { fromRevision: firstRevision, limit });
    return { stream, revision, position, events: recorded.map(upcasterFor(context)), repeated: true };
  }

  function upcasterFor(context: Context): Upcaster {
    const upcast = upcasters.get(context) ?? upcasterOf([context.events]);
    upcasters.set(context, upcast);
    return upcast;
  }
}

/** The same, telling somebody of every command and what came of it. */
function observed(handle: Handle, onHandled: NonNullable<HandleOptions['onHandled']>): Handle {
  return async (context, command) => {
    const startedMs = performance.now();
    try {
      const handled = await handle(context, command);
      onHandled(command, outcomeOf(handled), performance.now() - startedMs);
      return handled;
    } catch (error) {
      onHandled(command, 'refused', performance.now() - startedMs);
      throw error;
    }
  };
}

const STALE = new AgonError('INTERNAL.STALE', 'The cached fold may be behind.');

function authorise(context: Context, command: Command): string {
  const { spec } = classOf(command);
  invariant(spec?.type === command.type, `${command.type} was not made by its command class.`);
  if (!spec.allow(command.meta.actor, command.data)) {
    throw new AgonError(
      'AUTH.FORBIDDEN',
      `${command.meta.actor.role} ${command.meta.actor.id} may not ${command.type} in ${context.name}.`,
    );
  }
  const stream = spec.stream(command.data);
  if (stream.startsWith(context.streams) && stream[context.streams.length] === '-') return stream;
  throw new AgonError('INTERNAL.INVARIANT', `${command.type} of ${context.name} writes into ${stream}.`);
}

function sealAll(
  context: Context,
  command: Command,
  stream: string,
  head: StreamHead,
  events: readonly DomainEvent[],
  inputText: string,
  inputHash: string,
): SealedEvent[] {
  const { id: commandId, time, correlationId, causationId } = command.meta;
  // The hash covers who acted by id and role. Whatever else a caller's actor carries must not get into the envelope.
  const { id, role } = command.meta.actor;
  const meta = { commandId, inputHash, correlationId, causationId, actor: { id, role } };
  let { revision, hash: prevHash } = head;
  return events.map((event, index) => {
    const { version, data } = dataOf(context, command, event);
    revision += 1;
    // With the stream in it, since one command id may reach two streams and an event's id must be its own.
    const id = derivedId(commandId, stream, index);
    const draft = { id, type: event.type, version, stream, revision, time, data, meta, prevHash };
    const sealed = seal(draft, data === command.data ? inputText : canonical(data));
    prevHash = sealed.hash;
    return sealed;
  });
}

/** What was checked when the command was made, and is recorded as it is under the same schema, is not checked twice. */
function dataOf(context: Context, command: Command, event: DomainEvent): { version: number; data: unknown } {
  const spec = context.events.specs[event.type];
  const isChecked = event.data === command.data && spec?.schema === classOf(command).spec.data;
  return isChecked ? { version: spec.version, data: event.data } : checkedData(context.events, event);
}

const classOf = (command: Command) => command.constructor as unknown as CommandClass;

const outcomeOf = (handled: Handled) =>
  handled.repeated ? 'repeated' : handled.events.length > 0 ? 'appended' : 'unchanged';
