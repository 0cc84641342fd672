import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { MemoryEventStore } from '../adapters/store/memory.js';
import { defineEvents } from './catalogue.js';
import { defineCommand } from './command.js';
import { defineContext } from './context.js';
import { AgonError, isAgonError } from './errors.js';
import { type Actor, recomputeHash } from './event.js';
import { Add, AddEach, AddLittle, chain, counter, headAfter, metaOf, OPERATOR, TIME } from './fixtures.js';
import { Folds } from './folds.js';
import { createHandle, type Handle } from './handle.js';
import { derivedId } from './ids.js';
import { type EventStore, storeLimits } from './ports.js';

const add = (id: string, by: number, options: { counterId?: string; actor?: Actor; time?: string } = {}) =>
  new Add({ counterId: options.counterId ?? 'a', by }, metaOf(id, options.actor, options.time));

/** A memory store that counts what it is asked. */
class CountingStore extends MemoryEventStore {
  appends = 0;
  conflicts = 0;
  override async append(...args: Parameters<EventStore['append']>) {
    this.appends += 1;
    try {
      return await super.append(...args);
    } catch (error) {
      if (isAgonError(error, 'STORE.REVISION_CONFLICT')) this.conflicts += 1;
      throw error;
    }
  }
}

describe('handle()', () => {
  let store: CountingStore;
  let handle: Handle;
  beforeEach(() => {
    store = new CountingStore();
    handle = createHandle({ store });
  });
  const amounts = async () => (await store.readAll()).map((event) => (event.data as { by: number }).by);

  it('decides, seals and appends', async () => {
    const command = new AddEach({ counterId: 'a', amounts: [1, 2] }, { ...metaOf('c1'), causationId: 'cause' });
    const handled = await handle(counter, command);
    const [first, second] = await store.readStream('counter-a');
    expect(handled).toMatchObject({ stream: 'counter-a', revision: 1, position: 2, repeated: false });
    expect(handled.events).toEqual([first, second].map((event) => ({ type: event?.type, data: event?.data })));
    expect(first).toMatchObject({
      id: derivedId('c1', 'counter-a', 0),
      type: 'Added',
      version: 1,
      stream: 'counter-a',
      revision: 0,
      time: TIME,
      data: { counterId: 'a', by: 1 },
      meta: { commandId: 'c1', correlationId: 'c1', causationId: 'cause', actor: OPERATOR },
    });
    expect(second).toMatchObject({ id: derivedId('c1', 'counter-a', 1), revision: 1, prevHash: first?.hash });
  });

  it('seals of the actor what the hash covers, and no more', async () => {
    const actor = { ...OPERATOR, email: 'olga@example.org', sessionId: 's' };
    await handle(counter, add('c1', 1, { actor }));
    const [event] = await store.readAll();
    expect(event?.meta.actor).toEqual(OPERATOR);
    expect(event && recomputeHash(event)).toBe(event?.hash);
  });

  describe('authorises', () => {
    it.each<[Actor, boolean]>([
      [OPERATOR, true],
      [{ id: 'a', role: 'owner' }, true],
      [{ id: 'b', role: 'owner' }, false],
    ])('%j: %s', async (actor, allowed) => {
      const handled = handle(counter, add('c1', 1, { actor }));
      if (allowed) await expect(handled).resolves.toMatchObject({ repeated: false });
      else await expect(handled).rejects.toMatchObject({ code: 'AUTH.FORBIDDEN' });
      expect(await store.lastPosition()).toBe(allowed ? 1 : 0);
    });

    it('before a repetition tells anything', async () => {
      await handle(counter, add('c1', 1));
      const spy = add('c1', 1, { actor: { id: 'b', role: 'owner' } });
      await expect(handle(counter, spy)).rejects.toMatchObject({ code: 'AUTH.FORBIDDEN' });
    });

    it('only commands that a command class has checked', async () => {
      const { type, data, meta } = add('c1', 1);
      await expect(handle(counter, { type, data, meta })).rejects.toMatchObject({ code: 'INTERNAL.INVARIANT' });
    });
  });

  describe('a command that adds nothing', () => {
    it('appends nothing and is no error', async () => {
      await handle(counter, add('c1', 5));
      const handled = await handle(counter, add('c2', 0));
      expect(handled).toEqual({ stream: 'counter-a', revision: 0, position: 0, events: [], repeated: false });
      expect(store.appends).toBe(1);
    });

    it('on a stream that does not exist does not make one', async () => {
      await expect(handle(counter, add('c1', 0))).resolves.toMatchObject({ revision: -1, events: [] });
      expect(await store.head('counter-a')).toBeUndefined();
    });
  });

  describe('a refused command', () => {
    it('leaves nothing behind', async () => {
      await expect(handle(counter, add('c1', -1))).rejects.toMatchObject({ code: 'COUNTER.NEGATIVE' });
      await handle(counter, add('c2', 3));
      await expect(handle(counter, add('c3', -4))).rejects.toMatchObject({ code: 'COUNTER.NEGATIVE' });
      expect(await amounts()).toEqual([3]);
    });

    it('may be sent again with the same id when the state allows it', async () => {
      await expect(handle(counter, add('c1', -1))).rejects.toMatchObject({ code: 'COUNTER.NEGATIVE' });
      await handle(counter, add('c2', 3));
      await expect(handle(counter, add('c1', -1))).resolves.toMatchObject({ repeated: false });
      expect(await amounts()).toEqual([3, -1]);
    });
  });

  it.each([
    ['checked by the schema of the event', AddLittle],
    ['checked by another schema', Add],
  ])('records what a command holds as it is, %s', async (_how, Class) => {
    await handle(
      counter,
      new Class({ counterId: 'a', by: 3, extra: 1 } as { counterId: string; by: number }, metaOf('c')),
    );
    const [event] = await store.readAll();
    expect(event).toMatchObject({ type: 'Added', version: 1 });
    expect(event?.data).toEqual({ counterId: 'a', by: 3 });
    expect(event && recomputeHash(event)).toBe(event?.hash);
  });

  it.each([
    new AddEach({ counterId: 'a', amounts: [1, 5_000] }, metaOf('c1')),
    new Add({ counterId: 'a', by: 5_000 }, metaOf('c1')),
  ])('refuses events that do not fit their schema, and writes none of the command: $type', async (command) => {
    await expect(handle(counter, command)).rejects.toMatchObject({ code: 'EVENT.INVALID' });
    expect(await store.lastPosition()).toBe(0);
    await handle(counter, add('c2', 2));
    expect(await amounts()).toEqual([2]);
  });

  it('passes on what the store refuses, and goes on afterwards', async () => {
    const append = store.append.bind(store);
    store.append = () => Promise.reject(new AgonError('STORE.FULL', 'The disk is full.'));
    await expect(handle(counter, add('c1', 1))).rejects.toMatchObject({ code: 'STORE.FULL' });
    store.append = append;
    await expect(handle(counter, add('c1', 1))).resolves.toMatchObject({ repeated: false });
    expect(await amounts()).toEqual([1]);
  });

  describe('the same command again', () => {
    const memories: [string, (before: Handle) => Promise<Handle>][] = [
      ['at once', async (before) => before],
      ['after a restart', async () => createHandle({ store })],
      [
        'after its stream left the cache',
        async () => {
          const small = createHandle({ store, folds: new Folds({ store, cacheBytesMax: 2_000 }) });
          await small(counter, add('other-1', 1, { counterId: 'b' }));
          await small(counter, add('c1', 4));
          await small(counter, add('other-2', 1, { counterId: 'c' }));
          return small;
        },
      ],
    ];

    it.each(memories)('%s is answered as before and appends nothing', async (_when, remembered) => {
      const first = await handle(counter, add('c1', 4));
      await handle(counter, add('c2', 6));
      const later = await remembered(handle);
      const before = await store.lastPosition();
      const again = await later(counter, add('c1', 4, { time: '2026-03-02T00:00:00.000Z' }));
      expect(again).toMatchObject({ ...first, events: first.events as object[], repeated: true });
      expect(await store.lastPosition()).toBe(before);
    });

    it.each(memories)('%s with another input is an error', async (_when, remembered) => {
      await handle(counter, add('c1', 4));
      const later = await remembered(handle);
      const before = await store.lastPosition();
      await expect(later(counter, add('c1', 5))).rejects.toMatchObject({
        code: 'COMMAND.KEY_REUSED',
        details: { commandId: 'c1' },
      });
      expect(await store.lastPosition()).toBe(before);
    });

    it('returns all events of the first time, and only those', async () => {
      await handle(counter, add('c0', 1));
      const command = new AddEach({ counterId: 'a', amounts: [1, 2, 3] }, metaOf('c1'));
      const first = await handle(counter, command);
      await handle(counter, add('c2', 9));
      for (const later of [handle, createHandle({ store })]) {
        const again = await later(counter, command);
        expect(again).toMatchObject({ revision: 3, position: first.position, repeated: true });
        expect(again.events.map((event) => event.data)).toEqual(first.events.map((event) => event.data));
      }
    });

    it('twenty times at a time is carried out once', async () => {
      const all = await Promise.all(Array.from({ length: 20 }, () => handle(counter, add('c1', 1))));
      expect(all.filter((handled) => !handled.repeated)).toHaveLength(1);
      expect(await amounts()).toEqual([1]);
    });
  });

  describe('with another process on the same store', () => {
    let other: Handle;
    beforeEach(async () => {
      other = createHandle({ store });
      await handle(counter, add('c0', 10));
      await other(counter, add('warm', 1));
      await handle(counter, add('warm-too', 1));
    });

    it('reloads and decides again when the stream has moved', async () => {
      await other(counter, add('c1', -12));
      await expect(handle(counter, add('c2', 3))).resolves.toMatchObject({ revision: 4, repeated: false });
      expect(await amounts()).toEqual([10, 1, 1, -12, 3]);
    });

    it('decides on the new state, not on the one it had', async () => {
      await other(counter, add('c1', -12));
      await expect(handle(counter, add('c2', -1))).rejects.toMatchObject({ code: 'COUNTER.NEGATIVE' });
      expect(await amounts()).toEqual([10, 1, 1, -12]);
    });

    it('never refuses on a state that is behind', async () => {
      await other(counter, add('c1', 100));
      await expect(handle(counter, add('c2', -50))).resolves.toMatchObject({ repeated: false });
    });

    it('never calls a command without effect on a state that is behind', async () => {
      const setter = setterContext();
      const [here, there] = [createHandle({ store }), createHandle({ store })];
      await here(setter.context, setter.set('s1', 1));
      await there(setter.context, setter.set('s2', 2));
      await expect(here(setter.context, setter.set('s3', 1))).resolves.toMatchObject({ revision: 2 });
    });

    it('answers the very same command, carried out there, with what it did there', async () => {
      const there = await other(counter, add('c1', 7));
      const { revision, position } = there;
      await expect(handle(counter, add('c1', 7))).resolves.toMatchObject({ revision, position });
      expect(await store.lastPosition()).toBe(position);
      await expect(handle(counter, add('c2', 1))).resolves.toMatchObject({ revision: 4 });
    });

    it.each([
      ['the same input', 7],
      ['another input', 8],
    ])('tells a command of the same id and %s from its own, at the same revision', async (_what, by) => {
      // Both now believe the stream to be where it is, so both make the same event id for the same revision.
      await other(counter, add('sync', 1));
      await handle(counter, add('sync', 1));
      await other(counter, add('c1', 7));
      const late = handle(counter, add('c1', by, { time: '2026-03-02T00:00:00.000Z' }));
      if (by === 7) await expect(late).resolves.toMatchObject({ repeated: true, events: [{ data: { by: 7 } }] });
      else await expect(late).rejects.toMatchObject({ code: 'COMMAND.KEY_REUSED' });
      // What it remembers of the stream is what the store holds: it can go on.
      await expect(handle(counter, add('c2', 1))).resolves.toMatchObject({ repeated: false });
      expect(await amounts()).toEqual([10, 1, 1, 1, 7, 1]);
    });

    it('gets everything through once, if those who are told to send again do so', async () => {
      const handles = [handle, other, createHandle({ store })];
      const send = async (each: Handle, command: Add): Promise<void> => {
        await each(counter, command).catch((error: unknown) => {
          if (isAgonError(error, 'COMMAND.CONTENDED')) return send(each, command);
          throw error;
        });
      };
      const ids = Array.from({ length: 60 }, (_, i) => `mixed-${i}`);
      await Promise.all(ids.map((id, i) => send(handles[i % 3] as Handle, add(id, 1))));
      const sent = (await store.readAll({ after: 3 })).map((event) => event.meta.commandId);
      expect(sent.sort()).toEqual(ids.sort());
    });
  });

  it('gives up on a stream that changes under it every time, after a bounded number of decisions', async () => {
    const refuse = new AgonError('STORE.REVISION_CONFLICT', 'Somebody was faster.');
    store.append = async () => {
      store.appends += 1;
      throw refuse;
    };
    const patient = createHandle({ store, attemptsMax: 4 });
    await expect(patient(counter, add('c1', 1))).rejects.toMatchObject({ code: 'COMMAND.CONTENDED' });
    expect(store.appends).toBe(4);
  });

  it('queues the commands to one stream: all succeed, in the order they came, without a collision', async () => {
    const commands = Array.from({ length: 100 }, (_, i) => add(`c${i}`, i + 1));
    const handled = await Promise.all(commands.map((command) => handle(counter, command)));
    expect(handled.map((each) => each.revision)).toEqual(commands.map((_, i) => i));
    expect(await amounts()).toEqual(commands.map((_, i) => i + 1));
    expect([store.appends, store.conflicts]).toEqual([100, 0]);
  });

  it('lets the queue go on behind a refused command', async () => {
    const results = await Promise.allSettled(
      [add('c1', 1), add('c2', -9), add('c3', 2), add('c4', 5_000), add('c5', 3)].map((command) =>
        handle(counter, command),
      ),
    );
    expect(results.map((result) => result.status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect(await amounts()).toEqual([1, 2, 3]);
  });

  it('folds streams longer than a page', async () => {
    const length = storeLimits.pageEventsMax + 10;
    const setter = setterContext();
    const events = chain('setter-a', length, { data: (revision) => ({ value: revision }) });
    for (let from = 0; from < length; from += 512) {
      const page = events.slice(from, from + 512);
      await store.append('setter-a', from - 1, page);
    }
    expect(await store.head('setter-a')).toEqual(headAfter(events));
    const appends = store.appends;
    await expect(handle(setter.context, setter.set('same', length - 1))).resolves.toMatchObject({
      revision: length - 1,
      events: [],
    });
    expect(store.appends).toBe(appends);
  });

  it('tells what became of each command', async () => {
    const outcomes: string[] = [];
    const told = createHandle({
      store,
      onHandled: (command, outcome) => outcomes.push(`${command.meta.id} ${outcome}`),
    });
    await told(counter, add('c1', 1));
    await told(counter, add('c1', 1));
    await told(counter, add('c2', 0));
    await told(counter, add('c3', -9)).catch(() => {});
    expect(outcomes).toEqual(['c1 appended', 'c1 repeated', 'c2 unchanged', 'c3 refused']);
  });

  it('tells of each append, once, and of nothing that was not one', async () => {
    const appended: string[] = [];
    const told = createHandle({
      store,
      onAppended: ({ meta }, events, ms) => appended.push(`${meta.id} ${events.map(({ id }) => id)} ${ms >= 0}`),
    });
    await told(counter, add('c1', 1));
    await told(counter, add('c1', 1));
    await told(counter, add('c2', 0));
    await told(counter, add('c3', -9)).catch(() => {});
    const [first] = await store.readAll();
    expect(appended).toEqual([`c1 ${first?.id} true`]);
  });

  it('carries out any commands once and in order, whatever is repeated, wherever and whenever', async () => {
    const sending = fc.record({ by: fc.integer({ min: 1, max: 9 }), handle: fc.nat({ max: 2 }) });
    const repeating = fc.record({ index: fc.nat({ max: 30 }), handle: fc.nat({ max: 2 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ sending, repeats: fc.array(repeating, { maxLength: 3 }) }), {
          minLength: 1,
          maxLength: 15,
        }),
        async (steps) => {
          const shared = new MemoryEventStore();
          const handles = [0, 1, 2].map((size) =>
            createHandle({
              store: shared,
              folds: new Folds({ store: shared, cacheBytesMax: size === 2 ? 1 : 100_000 }),
            }),
          );
          const sent: Add[] = [];
          const places: object[] = [];
          for (const [i, step] of steps.entries()) {
            sent.push(add(`c${i}`, step.sending.by));
            places.push(await placeOf(handles[step.sending.handle], sent[i]));
            for (const { index, handle: which } of step.repeats) {
              const at = index % sent.length;
              expect(await placeOf(handles[which], sent[at])).toEqual(places[at]);
            }
          }
          const log = await shared.readAll();
          expect(log.map((event) => event.data)).toEqual(sent.map((command) => command.data));
          expect(log.map((event) => event.id)).toEqual(sent.map((_, i) => derivedId(`c${i}`, log[i]!.stream, 0)));
        },
      ),
      { seed: 10, numRuns: 100 },
    );
  });

  describe('a rule that needs the state', () => {
    class AddOnce extends defineCommand({
      type: 'AddOnce',
      data: counter.events.specs.Added?.schema as z.ZodObject<{ counterId: z.ZodString; by: z.ZodNumber }>,
      stream: (data) => `counter-${data.counterId}`,
      allow: () => true,
      allowGiven: (actor, _data, { total }: { total: number }) => actor.role === 'operator' || total === 0,
    }) {}
    const once = defineContext({
      ...counter,
      commands: [AddOnce],
      decider: { ...counter.decider, decide: ({ data }: AddOnce) => [{ type: 'Added', data }] },
    } as never);
    const ada: Actor = { id: 'ada', role: 'owner' };
    const addOnce = (id: string, actor: Actor) => new AddOnce({ counterId: 'a', by: 1 }, metaOf(id, actor));

    it('is judged after the fold, on every fold that the command is decided on', async () => {
      const elsewhere = createHandle({ store });
      expect(await handle(once, addOnce('c1', ada))).toMatchObject({ revision: 0 });
      await expect(handle(once, addOnce('c2', ada))).rejects.toMatchObject({ code: 'AUTH.FORBIDDEN' });
      await expect(elsewhere(once, addOnce('c3', ada))).rejects.toMatchObject({ code: 'AUTH.FORBIDDEN' });
      expect(await elsewhere(once, addOnce('c4', OPERATOR))).toMatchObject({ revision: 1 });
      expect(await amounts()).toEqual([1, 1]);
    });

    it('lets nobody in on a fold that is old, and keeps nobody out on one', async () => {
      const elsewhere = createHandle({ store });
      await handle(once, addOnce('c1', OPERATOR));
      await elsewhere(once, addOnce('c2', OPERATOR));
      // What this one knows is one event behind, and says that nothing was added: the append refuses, and it looks again.
      await elsewhere(counter, add('c3', -2));
      await expect(handle(once, addOnce('c4', ada))).resolves.toMatchObject({ revision: 3 });
      await expect(elsewhere(once, addOnce('c5', ada))).rejects.toMatchObject({ code: 'AUTH.FORBIDDEN' });
      // The same command again is answered as before, whatever stands now.
      await expect(elsewhere(once, addOnce('c4', ada))).resolves.toMatchObject({ repeated: true });
    });
  });

  it('keeps a context out of the streams of others', async () => {
    const { set } = setterContext();
    const writing = createHandle({ store: new MemoryEventStore() })(counter, set('c1', 1));
    await expect(writing).rejects.toMatchObject({ code: 'INTERNAL.INVARIANT' });
  });
});

async function placeOf(handle: Handle | undefined, command: Add | undefined): Promise<object> {
  if (!handle || !command) throw new Error('The property made a step that names nothing.');
  const { stream, revision, position, events } = await handle(counter, command);
  return { stream, revision, position, data: events.map((event) => event.data) };
}

/** A value that is set; setting what it already is changes nothing. */
function setterContext() {
  const events = defineEvents('setter', { Noted: { version: 1, schema: z.object({ value: z.int() }) } });
  const context = defineContext<{ value: number }, Add, { type: 'Noted'; data: { value: number } }>({
    name: 'setter',
    streams: 'setter',
    events,
    decider: {
      initial: { value: Number.NaN },
      decide: ({ data }, { value }) => (data.by === value ? [] : [{ type: 'Noted', data: { value: data.by } }]),
      evolve: (_state, { data }) => ({ value: data.value }),
    },
    commands: [SetTo],
  });
  return { context, set: (id: string, by: number) => new SetTo({ counterId: 'a', by }, metaOf(id)) };
}

class SetTo extends Add {
  static override readonly spec = { ...Add.spec, stream: (data: { counterId: string }) => `setter-${data.counterId}` };
}
