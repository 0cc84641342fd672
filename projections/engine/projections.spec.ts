import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EmbeddedBus } from '../../services/adapters/bus/embedded.js';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { AgonError, type Checkpoints, isAgonError, type RecordedEvent } from '../../services/kernel/index.js';
import { balances } from '../balances/table.js';
import { balancesView } from '../balances/view.js';
import { playedHistory } from '../history.contract.js';
import { MemorySink } from '../sinks/memory.js';
import { upcast } from '../views.js';
import { Projections, type ProjectionsOptions, statusFrom } from './projections.js';
import { Projector } from './projector.js';
import { rebuild } from './rebuild.js';
import type { View } from './view.js';

/** What a whole cluster shares, and how often it was begun anew. */
class SharedSink extends MemorySink {
  resets = 0;
  swaps = 0;
  refusing: AgonError | undefined;
  answering = true;

  override async reset(view: View): Promise<void> {
    this.resets += 1;
    await super.reset(view);
  }

  override async swap(view: View): Promise<void> {
    if (this.refusing) throw this.refusing;
    await super.swap(view);
    this.swaps += 1;
    if (!this.answering) throw new Error('Connection terminated unexpectedly');
  }
}

describe('several processes that keep one view', () => {
  let events: readonly RecordedEvent[];
  let store: MemoryEventStore;
  let sink: SharedSink;
  const running: Projections[] = [];
  const failures: string[] = [];
  const newer = { ...balancesView, version: balancesView.version + 1 };

  const append = async (some: readonly RecordedEvent[]) => {
    for (const { position: _position, ...event } of some) await store.append(event.stream, event.revision - 1, [event]);
  };
  const processOf = (view: View, options: Partial<ProjectionsOptions> = {}) => {
    const told = (error: unknown) => failures.push(isAgonError(error) ? error.code : `${error}`);
    const makeBus = (checkpoints: Checkpoints) => new EmbeddedBus(store, checkpoints, (_group, error) => told(error));
    const onBuildFailed = (_view: View, error: unknown) => told(error);
    const made = new Projections({ views: [view], sink, store, upcast, makeBus, onBuildFailed, ...options });
    running.push(made);
    return made;
  };
  const expected = async () => {
    const alone = new MemorySink();
    await new Projector(balancesView, alone, upcast).project(await store.readAll({}));
    return alone.rows(balances);
  };
  const caughtUp = async (view: View) => {
    const last = await store.lastPosition();
    const standing = async () => {
      const { version, position } = (await sink.serving(view)) ?? {};
      return { version, position };
    };
    await expect.poll(standing).toEqual({ version: view.version, position: last });
    expect(await sink.rows(balances)).toEqual(await expected());
  };

  beforeEach(async () => {
    events = await playedHistory();
    store = new MemoryEventStore();
    sink = new SharedSink();
    failures.length = 0;
    await append(events.slice(0, 120));
  });

  afterEach(async () => {
    for (const each of running.splice(0)) await each.stop();
  });

  it('leave what newer code built to it, and say so', async () => {
    const old = processOf(balancesView);
    await old.start();
    await caughtUp(balancesView);
    await processOf(newer).start();
    await caughtUp(newer);
    await append(events.slice(120, 160));
    await caughtUp(newer);
    await expect.poll(() => failures).toContain('PROJECTION.OTHER_VERSION');
    // One that starts only now finds them already there.
    const late = processOf(balancesView);
    await late.start();
    await expect
      .poll(async () => (await late.list())[0]?.build?.trouble)
      .toMatch(/^PROJECTION\.OTHER_VERSION: .*version/);
    await append(events.slice(160));
    await caughtUp(newer);
    expect(sink.resets).toBe(0);
    expect(sink.swaps).toBe(2);
  });

  it('go back to older rules only when somebody asks for it', async () => {
    const next = processOf(newer);
    await next.start();
    await caughtUp(newer);
    await next.stop();
    const old = processOf(balancesView);
    await old.start();
    await expect.poll(() => failures).toContain('PROJECTION.OTHER_VERSION');
    await old.rebuild(balancesView.name);
    await append(events.slice(120));
    await caughtUp(balancesView);
  });

  it('build a view once whose version was raised, however many they are', async () => {
    await processOf(balancesView).start();
    await caughtUp(balancesView);
    await Promise.all([processOf(newer), processOf(newer), processOf(newer)].map((each) => each.start()));
    const builds = () => Promise.all(running.slice(1).map(async (each) => (await each.list())[0]?.build));
    await expect.poll(builds).toEqual([null, null, null]);
    expect(sink.swaps).toBe(2);
    await append(events.slice(120));
    await caughtUp(newer);
  });

  it('compute nothing from rows that another one has replaced, though the position is the same', async () => {
    const blind = Object.assign(
      (event: RecordedEvent) => {
        if (event.type === 'CreditsGranted') throw new AgonError('EVENT.FUTURE_VERSION', 'It is not known yet.');
        return upcast(event);
      },
      { knows: upcast.knows },
    );
    // It learns to read such events while it runs, as if a mended build had taken its place and loaded its rows.
    let reader = blind;
    const mended = Object.assign((event: RecordedEvent) => reader(event), { knows: upcast.knows });
    await processOf(balancesView, { upcast: mended }).start();
    await expect.poll(async () => (await sink.serving(balancesView))?.position).toBe(120);
    expect(await sink.letters(balancesView)).not.toEqual([]);
    reader = upcast;
    await append(events.slice(120, 160));
    await expect.poll(async () => (await sink.serving(balancesView))?.position).toBe(160);

    await rebuild({ view: balancesView, sink, store, upcast });
    expect((await sink.serving(balancesView))?.position).toBe(160);
    expect(await sink.rows(balances)).toEqual(await expected());
    await append(events.slice(160));
    await caughtUp(balancesView);
    expect(failures).toContain('CHECKPOINT.MOVED');
  });

  it('build what any process asks for, and tell how it goes', async () => {
    await processOf(balancesView, { lookEveryMs: 5 }).start();
    await caughtUp(balancesView);
    const { generation } = (await sink.serving(balancesView))!;
    const status = async () => (await statusFrom(sink, store, balancesView)).build;
    sink.refusing = new AgonError('DATABASE.UNAVAILABLE', 'It restarts.');
    await sink.ask(balancesView);
    expect(await status()).not.toBeNull();
    await expect
      .poll(status)
      .toMatchObject({ position: 120, total: 120, trouble: expect.stringMatching(/It restarts/) });
    sink.refusing = undefined;
    await expect.poll(status).toBeNull();
    expect((await sink.serving(balancesView))?.generation).not.toBe(generation);
    expect(sink.swaps).toBe(2);
  });

  it('tell of a build that serves though nobody heard of its swap, also when the log goes no further', async () => {
    const swapped: string[] = [];
    const one = processOf(balancesView, { onSwapped: ({ name }) => swapped.push(name) });
    await one.start();
    await caughtUp(balancesView);
    const { generation } = (await sink.serving(balancesView))!;
    swapped.length = 0;
    sink.answering = false;
    await one.rebuild(balancesView.name);
    expect((await sink.serving(balancesView))?.generation).not.toBe(generation);
    expect(failures).toEqual(['Error: Connection terminated unexpectedly']);
    expect(swapped).toEqual([balancesView.name]);
  });

  it('leave to newer code what it asked for', async () => {
    const old = processOf(balancesView, { lookEveryMs: 5 });
    await old.start();
    await caughtUp(balancesView);
    await sink.ask(newer);
    await append(events.slice(120));
    await caughtUp(balancesView);
    expect(sink.swaps).toBe(1);
    await processOf(newer, { lookEveryMs: 5 }).start();
    await caughtUp(newer);
    expect((await sink.asked()).size).toBe(0);
  });
});

describe('a build whose last commits a crash of the database took, though they were confirmed', () => {
  it.each([
    ['the log has gone on', 40],
    ['the log is quiet', 0],
  ])('goes on where it is, when %s', async (_when, more) => {
    const events = await playedHistory();
    const store = new MemoryEventStore();
    const append = async (some: readonly RecordedEvent[]) => {
      for (const { position: _position, ...event } of some)
        await store.append(event.stream, event.revision - 1, [event]);
    };
    await append(events.slice(0, 120));
    const sink = new MemorySink();
    await new Projector(balancesView, sink, upcast).project(await store.readAll({}));
    let turns = 0;
    // While it waits for its turn to swap, nothing of its own is under way that could notice.
    const exclusively = async <T>(work: () => Promise<T>): Promise<T> => {
      turns += 1;
      if (turns > 5) throw new Error('It does not get on.');
      if (turns === 1) {
        const build = (await sink.beside(balancesView)) as MemorySink;
        await build.reset(balancesView);
        await new Projector(balancesView, build, upcast).project(events.slice(0, 60));
        await append(events.slice(120, 120 + more));
      }
      return work();
    };
    const built = await rebuild({ view: balancesView, sink, store, upcast, exclusively });
    expect(built).toMatchObject({ swapped: true, position: 120 + more });
    const expected = new MemorySink();
    await new Projector(balancesView, expected, upcast).project(await store.readAll({}));
    expect((await sink.serving(balancesView))?.position).toBe(120 + more);
    expect(await sink.rows(balances)).toEqual(await expected.rows(balances));
  });
});
