import { describe, expect, it } from 'vitest';
import { AgonError, type Consumer } from '../kernel/index.js';
import type { Engines } from './engines.js';
import { Host } from './host.js';
import { definePart, type Part } from './part.js';
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

const hostOf = (options: { waits?: boolean; onStep?: (name: string) => void } = {}) =>
  new Host({
    config: parseConfig({ logLevel: 'silent' }, {}),
    names: ['relay'],
    engines: () => ({ log: async () => ({ lastPosition: async () => 5 }) }) as unknown as Engines,
    waits: false,
    ...options,
  });

describe('how a process says that it is', () => {
  const host = hostOf();
  const wrong = new AgonError('RELAY.AHEAD_OF_LOG', 'They belong to different logs.');
  const partOf = async (name: string) => (await host.status()).find(({ part }) => part === name);

  it.each([
    ['that has caught up', true, 5, { ready: true, detail: '0 events behind' }],
    ['that stands by', false, 5, { ready: true, detail: 'stands by' }],
  ])('a consumer %s is ready', async (name, active, position, expected) => {
    host.follow(name, following(active, position).consumer, async () => 5);
    expect(await partOf(name)).toMatchObject(expected);
  });

  it('a consumer that stands by in trouble is not', async () => {
    host.follow('stuck', following(false).consumer, async () => 5);
    host.onRetry('stuck', wrong);
    expect(await partOf('stuck')).toMatchObject({ ready: false, detail: expect.stringMatching(/^stands by; RELAY\./) });
  });

  it('a consumer of which nobody can say how far it should be is not, and says why', async () => {
    const last = async () => {
      throw new Error('nobody publishes');
    };
    host.follow('alone', following(false).consumer, last);
    host.onRetry('alone', wrong);
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

describe('parts', () => {
  const said: string[] = [];
  const partNamed = (name: string, needs: Record<string, Part> = {}, open: () => Promise<unknown> = async () => name) =>
    definePart({
      name,
      needs,
      start: async (values, host) => {
        await host.engine(`engine of ${name}`, async () => ({
          value: name,
          stop: async () => said.push(`engine of ${name} stopped`),
        }));
        await open();
        said.push(`${name} started with ${JSON.stringify(values)}`);
        return { value: name, stop: async () => said.push(`${name} stopped`) };
      },
    });
  const log = partNamed('log');
  const bus = partNamed('bus', { log });
  const server = partNamed('server', { bus, log });
  const failing = partNamed('failing', { log }, async () => {
    throw new AgonError('ENGINE.GONE', 'It does not answer.');
  });

  it('start after what they need, are given it, and stop before it; engines stop last', async () => {
    said.length = 0;
    const host = hostOf();
    await host.start([server]);
    await host.stop();
    expect(said).toEqual([
      'log started with {}',
      'bus started with {"log":"log"}',
      'server started with {"bus":"bus","log":"log"}',
      'server stopped',
      'bus stopped',
      'log stopped',
      'engine of server stopped',
      'engine of bus stopped',
      'engine of log stopped',
    ]);
  });

  it('get the part of the list where it has one of the name that they need', async () => {
    const other = definePart({ name: 'log', needs: {}, start: async () => ({ value: 'another log' }) });
    const host = hostOf();
    await host.start([bus, other]);
    expect(await host.value(log)).toBe('another log');
    await host.stop();
  });

  it('fail at once where nobody waits, and what had started is stopped', async () => {
    said.length = 0;
    const host = hostOf();
    await expect(host.start([failing, bus])).rejects.toMatchObject({ code: 'ENGINE.GONE' });
    await host.stop();
    expect(said).toContain('log stopped');
    expect(said.at(-1)).toBe('engine of log stopped');
  });

  it('are waited for where somebody waits, and say meanwhile what is missing', async () => {
    let there = false;
    const late = partNamed('late', {}, async () => {
      if (!there) throw new AgonError('ENGINE.GONE', 'It does not answer.');
    });
    const host = hostOf({ waits: true });
    const starting = host.start([late]);
    const lateStatus = async () => (await host.status()).find(({ part }) => part === 'late');
    await expect.poll(lateStatus).toMatchObject({ ready: false, detail: 'ENGINE.GONE: It does not answer.' });
    there = true;
    await starting;
    expect(await host.value(late)).toBe('late');
    await host.stop();
  });

  it('do not keep a host from stopping that are being waited for', async () => {
    const host = hostOf({ waits: true });
    const starting = host.start([failing]);
    starting.catch(() => {});
    await expect.poll(async () => (await host.status()).length).toBeGreaterThan(0);
    await host.stop();
    await expect(starting).rejects.toThrow();
  });

  it('that fail to stop do not keep the others from it', async () => {
    said.length = 0;
    const stuck = definePart({
      name: 'stuck',
      needs: { log },
      start: async () => ({
        value: 0,
        stop: async () => {
          throw new Error('stuck');
        },
      }),
    });
    const host = hostOf();
    await host.start([stuck]);
    await host.stop();
    expect(said).toContain('log stopped');
  });
});
