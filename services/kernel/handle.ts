import { hash as digest } from 'node:crypto';
import { assertAllowedGiven, authorise, classOf } from './authorise.js';
import { canonical } from './canonical.js';
import { checkedData } from './catalogue.js';
import type { Context } from './context.js';
import type { Command, DomainEvent } from './decider.js';
import { AgonError, isAgonError } from './errors.js';
import { type SealedEvent, type StreamHead, seal } from './event.js';
import { type CommandEffect, Folds } from './folds.js';
import { derivedId } from './ids.js';
import type { EventStore } from './ports.js';

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
  /** Streams folded so far; shared with whoever reads them by `load()`. Its own when left out. */
  readonly folds?: Folds;
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

/** Who waits for a turn on a stream. */
type Turns = (() => void)[];

/**
 * Makes the only write path: authorise → load (cached fold, then only what is newer) → authorise by state → decide → append at the expected
 * revision → on conflict reload and decide again, a bounded number of times. Commands to one stream queue behind each
 * other instead of colliding.
 *
 * @example
 * const handle = createHandle({ store });
 * const welcome = { accountId: 'ada', amountCents: '1000', currency: 'PLAY', reason: 'welcome' };
 * await handle(wallet, new GrantCredits(welcome, newMeta(SYSTEM)));
 */
export function createHandle(options: HandleOptions): Handle {
  const { store, folds = new Folds({ store }), attemptsMax = 10, onHandled, onAppended } = options;
  /** Streams with a command at work, and the commands that wait for their turn on them. */
  const busy = new Map<string, Turns>();

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
      let current = folds.cached(stream);
      // A fold from the cache may be behind another process. It is good enough to try an append with, because the store
      // checks the revision; it is not good enough to refuse with, so a refusal is only final on a fresh one.
      let fresh = false;
      if (!current) {
        current = await folds.refresh(context, stream);
        fresh = true;
      }
      for (let attempt = 1; attempt <= attemptsMax; attempt++) {
        const before = current.done.get(command.meta.id);
        if (before) return repeat(context, stream, command, before, inputHash);
        let events: readonly DomainEvent[];
        try {
          assertAllowedGiven(context, command, current.state);
          events = context.decider.decide(command, current.state);
          if (events.length === 0 && !fresh) throw STALE;
        } catch (error) {
          if (fresh) throw error;
          const revision: number = current.head.revision;
          current = await folds.refresh(context, stream, current);
          fresh = true;
          if (current.head.revision === revision && error !== STALE) throw error;
          continue;
        }
        if (events.length === 0)
          return { stream, revision: current.head.revision, position: 0, events, repeated: false };
        const { sealed, textLength } = sealAll(context, command, stream, current.head, events, inputText, inputHash);
        const startedMs = onAppended ? performance.now() : 0;
        try {
          const { revision, position } = await store.append(stream, current.head.revision, sealed);
          folds.appended(context, stream, current, { sealed, position, textLength });
          onAppended?.(command, sealed, performance.now() - startedMs);
          return { stream, revision, position, events, repeated: false };
        } catch (error) {
          if (!isAgonError(error, 'STORE.REVISION_CONFLICT')) throw error;
          current = await folds.refresh(context, stream, current);
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

  async function repeat(
    context: Context,
    stream: string,
    command: Command,
    before: CommandEffect,
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
    return { stream, revision, position, events: recorded.map(folds.upcasterOf(context)), repeated: true };
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

function sealAll(
  context: Context,
  command: Command,
  stream: string,
  head: StreamHead,
  events: readonly DomainEvent[],
  inputText: string,
  inputHash: string,
): { sealed: readonly SealedEvent[]; textLength: number } {
  const { id: commandId, time, correlationId, causationId } = command.meta;
  // The hash covers who acted by id and role. Whatever else a caller's actor carries must not get into the envelope.
  const { id, role } = command.meta.actor;
  const meta = { commandId, inputHash, correlationId, causationId, actor: { id, role } };
  let { revision, hash: prevHash } = head;
  let textLength = 0;
  const sealed = events.map((event, index) => {
    const { version, data } = dataOf(context, command, event);
    revision += 1;
    // With the stream in it, since one command id may reach two streams and an event's id must be its own.
    const id = derivedId(commandId, stream, index);
    const draft = { id, type: event.type, version, stream, revision, time, data, meta, prevHash };
    const text = data === command.data ? inputText : canonical(data);
    textLength += text.length;
    const one = seal(draft, text);
    prevHash = one.hash;
    return one;
  });
  return { sealed, textLength };
}

/** What was checked when the command was made, and is recorded as it is under the same schema, is not checked twice. */
function dataOf(context: Context, command: Command, event: DomainEvent): { version: number; data: unknown } {
  const spec = context.events.specs[event.type];
  const isChecked = event.data === command.data && spec?.schema === classOf(command).spec.data;
  return isChecked ? { version: spec.version, data: event.data } : checkedData(context.events, event);
}

const outcomeOf = (handled: Handled) =>
  handled.repeated ? 'repeated' : handled.events.length > 0 ? 'appended' : 'unchanged';
