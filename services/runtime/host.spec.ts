import { describe, expect, it } from 'vitest';
import { AgonError, type Consumer } from '../kernel/index.js';
import { Frame } from './host.js';
import { parseConfig } from './settings.js';
import { Trouble } from './status.js';

function following(
  active: boolean,
  position = 5,
): { consumer: Consumer; state: { active: boolean; position: number } } {
  const state = { active, position };
  const done = new Promise<void>(() => {});
  const consumer = { done, stop: async () => {}, position: () => state.position, active: () => state.active };
  return { consumer, state };
}

describe('how a process says that it is', () => {
  const frame = new Frame(parseConfig({ logLevel: 'silent' }, {}), ['relay']);
  const wrong = new AgonError('RELAY.AHEAD_OF_LOG', 'They belong to different logs.');
  const partOf = async (name: string) => (await frame.status()).find(({ part }) => part === name);

  it.each([
    ['that has caught up', true, 5, { ready: true, detail: '0 events behind' }],
    ['that stands by', false, 5, { ready: true, detail: 'stands by' }],
  ])('a consumer %s is ready', async (name, active, position, expected) => {
    frame.watch(name, following(active, position).consumer, async () => 5);
    expect(await partOf(name)).toMatchObject(expected);
  });

  it('a consumer that stands by in trouble is not', async () => {
    frame.watch('stuck', following(false).consumer, async () => 5);
    frame.onRetry('stuck', wrong);
    expect(await partOf('stuck')).toMatchObject({ ready: false, detail: expect.stringMatching(/^stands by; RELAY\./) });
  });

  it('a consumer of which nobody can say how far it should be is not, and says why', async () => {
    const last = async () => {
      throw new Error('nobody publishes');
    };
    frame.watch('alone', following(false).consumer, last);
    frame.onRetry('alone', wrong);
    expect(await partOf('alone')).toMatchObject({
      ready: false,
      detail: expect.stringMatching(/^nobody publishes; RE/),
    });
  });

  it('trouble is over when the consumer gets on, or when nothing was heard of it for long enough', () => {
    const { consumer, state } = following(false);
    let nowMs = 0;
    const trouble = new Trouble(new Map([['a', consumer]]), () => nowMs);
    trouble.retried('a', wrong);
    nowMs = 10_000;
    expect(
      [trouble.of('a'), trouble.of('a', 10_000), trouble.of('a', 9_999)].map((each) => each !== undefined),
    ).toEqual([true, true, false]);
    state.position += 1;
    expect(trouble.of('a')).toBeUndefined();
  });
});
