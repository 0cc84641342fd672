import { describe, expect, it } from 'vitest';
import { SYSTEM } from './command.js';
import type { RecordedEvent } from './event.js';
import { Add, chain } from './fixtures.js';
import { derivedId } from './ids.js';
import { definePolicy } from './policy.js';

interface Noted {
  readonly type: 'Noted';
  readonly data: { readonly revision: number };
}

const mirror = definePolicy<Noted>('test.mirror', ['Noted'], (event, meta) =>
  Array.from({ length: event.data.revision }, (_, i) => new Add({ counterId: 'copy', by: 1 }, meta(i))),
);
const recorded = chain('note-a', 4).map((event, i): RecordedEvent => ({ ...event, position: i + 1 }));

describe('a policy', () => {
  it('names itself and what it listens to', () => {
    expect(mirror).toMatchObject({ name: 'test.mirror', types: ['Noted'] });
  });

  it('gives the same commands however often an event is delivered', () => {
    const [, , event] = recorded as [RecordedEvent, RecordedEvent, RecordedEvent];
    expect(mirror.react(event)).toEqual(mirror.react(structuredClone(event)));
    expect(mirror.react({ ...event, position: 900 })).toEqual(mirror.react(event));
  });

  it('acts as the system, at the time of its cause, which it names', () => {
    const event = recorded[1] as RecordedEvent;
    expect(mirror.react(event).map((command) => command.meta)).toEqual([
      {
        id: derivedId(event.id, 'test.mirror', 0),
        actor: SYSTEM,
        time: event.time,
        correlationId: event.meta.correlationId,
        causationId: event.id,
      },
    ]);
  });

  it('never uses an id twice: not in a reaction, not for another event, not in another policy', () => {
    const other = definePolicy<Noted>('test.other', ['Noted'], ({ data }, meta) =>
      Array.from({ length: data.revision }, (_, i) => new Add({ counterId: 'copy', by: 1 }, meta(i))),
    );
    const ids = [mirror, other].flatMap((policy) => recorded.flatMap((event) => policy.react(event)));
    expect(ids).toHaveLength(12);
    expect(new Set(ids.map((command) => command.meta.id)).size).toBe(12);
  });

  it('may have nothing to say', () => {
    expect(mirror.react(recorded[0] as RecordedEvent)).toEqual([]);
  });
});
