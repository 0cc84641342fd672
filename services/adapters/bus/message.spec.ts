import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chain } from '../../kernel/fixtures.js';
import { callerOf, type RecordedEvent, recomputeHash, spanIdOf, traceIdOf } from '../../kernel/index.js';
import { anyJson } from '../store/odd-data.contract.js';
import { chosenOf } from './kafka-group.js';
import { buriedMessage, letterOf, standing } from './kafka-letters.js';
import { parted } from './kafka-relay.js';
import { decodeEvent, encodeEvent, type Message, Topics } from './message.js';

const event = (data: unknown = { note: 'ä' }): RecordedEvent => ({
  ...(chain('wallet-ada', 1, { data: () => data })[0] as RecordedEvent),
  position: 42,
});

/** As it comes back: everything is bytes. */
const overTheWire = ({ key, value, headers }: ReturnType<typeof encodeEvent>): Message => ({
  key: Buffer.from(key),
  value: Buffer.from(value),
  headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, Buffer.from(text as string)])),
});

describe('an event on Kafka', () => {
  it('comes back as it was, with a hash that still fits', () => {
    fc.assert(
      fc.property(anyJson(), (data) => {
        const sent = event(JSON.parse(JSON.stringify(data)));
        const got = decodeEvent(overTheWire(encodeEvent(sent, '/agon/wallet')));
        expect(got).toEqual(sent);
        expect(recomputeHash(got)).toBe(sent.hash);
      }),
    );
  });

  it('is a CloudEvent in binary mode, keyed by its stream', () => {
    const sent = event();
    expect(encodeEvent(sent, '/agon/wallet')).toMatchObject({
      key: 'wallet-ada',
      value: '{"note":"ä"}',
      headers: {
        'content-type': 'application/json',
        ce_specversion: '1.0',
        ce_id: sent.id,
        ce_type: 'Noted',
        ce_source: '/agon/wallet',
        ce_subject: 'wallet-ada',
        ce_time: sent.time,
        ce_position: '42',
      },
    });
  });

  it('belongs to the trace of what it follows from, at its own place', () => {
    const sent = event();
    const { traceparent } = encodeEvent(sent, '/agon/wallet').headers;
    expect(callerOf(traceparent)).toEqual({ traceId: traceIdOf(sent.meta.correlationId), spanId: spanIdOf(sent.id) });
  });

  it('is refused by name when something else writes to the topic', () => {
    expect(() => decodeEvent({ value: '{}', headers: { ce_id: 'x' } })).toThrow(
      expect.objectContaining({ code: 'BUS.NOT_AN_EVENT', message: expect.stringContaining('ce_type') }),
    );
  });
});

describe('topics', () => {
  const topics = new Topics();

  it.each([
    ['account-ada', 'agon.accounts.events.v1'],
    ['agent-ada.bot', 'agon.agents.events.v1'],
    ['match-1', 'agon.arena.events.v1'],
    ['wallet-ada', 'agon.wallet.events.v1'],
    ['payments-ada', 'agon.payments.events.v1'],
    ['runner-1', 'agon.runners.events.v1'],
    ['tournament-1', 'agon.other.events.v1'],
  ])('%s goes to %s', (stream, topic) => {
    expect(topics.of(stream)).toBe(topic);
    expect(topics.events).toContain(topic);
  });

  it('has one for every context that has events', () => {
    const services = join(import.meta.dirname, '..', '..');
    const contexts = readdirSync(services, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && readdirSync(join(services, entry.name)).includes('events.ts'))
      .map(({ name }) => name);
    expect(topics.events).toEqual(expect.arrayContaining(contexts.map((context) => `agon.${context}.events.v1`)));
    for (const context of contexts) {
      const commands = readFileSync(join(services, context, 'commands.ts'), 'utf8');
      // One stream for each of something, or one for all.
      const [, category] = /`([a-z]+)-\$\{|'([a-z]+)-registry'/.exec(commands)?.filter(Boolean) ?? [];
      expect([context, topics.contextOf(`${category}-1`)]).toEqual([context, context]);
    }
  });
});

describe('a transaction of the relay', () => {
  const sized = (...bytes: number[]) => bytes.map((each) => ({ bytes: each }));
  it.each([
    ['by count', sized(1, 1, 1, 1, 1), [2, 2, 1]],
    ['by bytes', sized(6, 6, 3, 3), [1, 2, 1]],
    ['never an event, however large', sized(50, 1, 50), [1, 1, 1]],
    ['nothing into nothing', [], []],
  ])('is cut %s', (_name, events, lengths) => {
    const parts = parted(events, { events: 2, bytes: 10 });
    expect(parts.map((part) => part.length)).toEqual(lengths);
    expect(parts.flat()).toEqual(events);
  });
});

describe('a dead letter on Kafka', () => {
  const letter = { group: 'policy.escrow', position: 42, eventId: event().id, code: 'X', message: 'no', attempts: 3 };
  const origin = { topic: 'agon.wallet.events.v1', partition: 1, offset: '7' };
  const wire = overTheWire(encodeEvent(event(), '/agon/wallet'));

  it('keeps the event, where it stood, and why it was put aside', () => {
    const buried = buriedMessage(wire, letter, origin);
    expect(letterOf(buried)).toEqual({ ...letter, type: 'Noted', stream: 'wallet-ada', origin });
    expect(decodeEvent(buried)).toEqual(event());
  });

  it('says where it first stood when it fails again', () => {
    const again = buriedMessage(
      buriedMessage(wire, letter, origin),
      { ...letter, code: 'Y' },
      { ...origin, topic: 'replay' },
    );
    expect(letterOf(again)).toMatchObject({ code: 'Y', origin });
  });

  it('stands until it is deleted, in its newest form', () => {
    const record = (key: string, value: string | null) => ({ key, value });
    const left = standing([record('a', '1'), record('b', '1'), record('a', '2'), record('c', '1'), record('b', null)]);
    expect(left).toEqual([record('a', '2'), record('c', '1')]);
  });
});

describe('the member that gets all partitions', () => {
  it.each([
    [
      [
        ['b', false],
        ['a', false],
      ],
      'a',
    ],
    [
      [
        ['b', true],
        ['a', false],
      ],
      'b',
    ],
    [
      [
        ['c', true],
        ['b', true],
        ['a', false],
      ],
      'b',
    ],
    [[], undefined],
  ] as const)('of %j is %s', (members, chosen) => {
    expect(chosenOf(members.map(([memberId, active]) => ({ memberId, active })))).toBe(chosen);
  });
});
