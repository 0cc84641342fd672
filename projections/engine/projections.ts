import { setTimeout as sleep } from 'node:timers/promises';
import {
  AgonError,
  type Bus,
  type Checkpoints,
  type Consumer,
  type DeadLetter,
  type EventStore,
  type Upcaster,
} from '../../services/kernel/index.js';
import { type Committed, groupOf, Projector } from './projector.js';
import { type BuildProgress, rebuild } from './rebuild.js';
import type { BuriedEvent, RebuildingSink } from './sink.js';
import type { View } from './view.js';

const BATCH_EVENTS = 2_048;
const RETRY_MS = { first: 50, max: 2_000 };

export interface ProjectionsOptions {
  readonly views: readonly View[];
  readonly sink: RebuildingSink;
  readonly store: EventStore;
  readonly upcast: Upcaster;
  makeBus(checkpoints: Checkpoints): Bus;
  /** Batch sizes; small ones make more places at which a kill can strike. */
  readonly batchEvents?: number;
  readonly buildBatchEvents?: number;
  onCommitted?(committed: Committed): void;
  /** The rows of a view were replaced as a whole. */
  onSwapped?(view: View): void;
  onBuildFailed?(view: View, error: unknown): void;
  onProgress?(view: View, progress: BuildProgress): void;
}

/** How a view stands: what `agon projections list` shows. */
export interface ProjectionStatus {
  readonly view: string;
  /** Of the code; the rows that serve may still follow an older one. */
  readonly version: number;
  readonly servingVersion: number | null;
  readonly position: number;
  readonly lagEvents: number;
  readonly deadLetters: number;
  readonly build: (BuildProgress & { readonly eventsPerSecond: number; readonly secondsLeft: number }) | null;
}

interface Building {
  readonly done: Promise<void>;
  readonly startedMs: number;
  progress: BuildProgress;
}

/** Keeps the views up to date from the bus, and builds anew those that need it, while the old rows serve. */
export class Projections {
  readonly consumers: ReadonlyMap<string, Consumer>;
  private readonly projectors: ReadonlyMap<string, Projector>;
  private readonly buildings = new Map<string, Building>();
  private readonly live = new Map<string, Consumer>();
  private readonly served = new Map<string, number>();
  private readonly failed = new Map<string, (error: unknown) => void>();
  private readonly stopping = new AbortController();
  private readonly bus: Bus;

  constructor(private readonly options: ProjectionsOptions) {
    const { views, sink, upcast, onCommitted } = options;
    this.projectors = new Map(views.map((view) => [view.name, new Projector(view, sink, upcast, onCommitted)]));
    this.bus = options.makeBus(new ProjectionCheckpoints(this.projectors));
    this.consumers = new Map(views.map((view) => [view.name, this.consumerOf(view)]));
  }

  /**
   * A view whose rows follow the rules of this build goes on from its checkpoint. One that does not, or that was being
   * built when the process ended, is built beside, and follows the log once it is swapped in.
   */
  async start(): Promise<void> {
    for (const view of this.options.views) {
      const serving = await this.options.sink.serving(view);
      this.served.set(view.name, serving?.position ?? 0);
      const current = serving ? serving.version === view.version : (await this.options.store.lastPosition()) === 0;
      if (current) await this.follow(view);
      if (!current || (await this.options.sink.building(view))) this.build(view);
    }
  }

  /** Starts to build a view anew, or goes on with a build. Resolves when the new rows serve. */
  rebuild(name: string): Promise<void> {
    const view = this.viewNamed(name);
    return (this.buildings.get(name) ?? this.build(view)).done;
  }

  async list(): Promise<ProjectionStatus[]> {
    return Promise.all(this.options.views.map((view) => this.statusOf(view)));
  }

  async status(name: string): Promise<ProjectionStatus> {
    return this.statusOf(this.viewNamed(name));
  }

  async deadLetters(name?: string): Promise<BuriedEvent[]> {
    const views = name === undefined ? this.options.views : [this.viewNamed(name)];
    return (await Promise.all(views.map((view) => this.options.sink.letters(view)))).flat();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all([...this.buildings.values()].map(({ done }) => done.catch(() => {})));
    await this.bus.close();
  }

  private viewNamed(name: string): View {
    return viewNamed(this.options.views, name);
  }

  private async statusOf(view: View): Promise<ProjectionStatus> {
    const { sink, store } = this.options;
    const [serving, last, letters] = await Promise.all([sink.serving(view), store.lastPosition(), sink.letters(view)]);
    const building = this.buildings.get(view.name);
    return statusOf({ view, serving, last, deadLetters: letters.length, building: building && paced(building) });
  }

  private async follow(view: View): Promise<void> {
    const projector = this.projectors.get(view.name) as Projector;
    const options = { group: groupOf(view), batchSize: this.options.batchEvents ?? BATCH_EVENTS };
    const consumer = await this.bus.consume(options, (events) => projector.receive(events));
    this.live.set(view.name, consumer);
    consumer.done.catch((error: unknown) => this.failed.get(view.name)?.(error));
  }

  private build(view: View): Building {
    const begun = { position: 0, total: 0, events: 0, phase: 'building' as const };
    const building: Building = { done: this.buildUntilDone(view), startedMs: performance.now(), progress: begun };
    this.buildings.set(view.name, building);
    building.done.catch(() => {}).finally(() => this.buildings.delete(view.name));
    return building;
  }

  /** Whatever passes, a database that restarts for instance, is waited for; the build goes on where it was. */
  private async buildUntilDone(view: View): Promise<void> {
    const { sink, store, upcast, buildBatchEvents } = this.options;
    const projector = this.projectors.get(view.name) as Projector;
    for (let failures = 0; ; failures++) {
      try {
        const built = await rebuild({
          ...{ view, sink, store, upcast, signal: this.stopping.signal },
          ...(buildBatchEvents === undefined ? {} : { batchEvents: buildBatchEvents }),
          exclusively: (work) => projector.exclusively(work),
          onProgress: (progress) => this.noteProgress(view, progress),
        });
        if (!built.swapped) throw new AgonError('PROJECTION.INTERRUPTED', `The build of ${view.name} was interrupted.`);
        this.served.set(view.name, built.position);
        this.options.onSwapped?.(view);
        if (!this.live.has(view.name)) await this.follow(view);
        return;
      } catch (error) {
        if (this.stopping.signal.aborted) throw error;
        this.options.onBuildFailed?.(view, error);
      }
      const waitMs = Math.min(RETRY_MS.max, RETRY_MS.first * 2 ** Math.min(failures, 8));
      await sleep(waitMs, undefined, { signal: this.stopping.signal });
    }
  }

  private noteProgress(view: View, progress: BuildProgress): void {
    const building = this.buildings.get(view.name);
    if (building) building.progress = progress;
    this.options.onProgress?.(view, progress);
  }

  /** Stands for the view from the start on, also while it is built and nothing follows the bus yet. */
  private consumerOf(view: View): Consumer {
    const { signal } = this.stopping;
    const ended = new Promise<void>((resolve, reject) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      this.failed.set(view.name, reject);
    });
    ended.catch(() => {});
    return {
      stop: async () => this.live.get(view.name)?.stop(),
      done: ended,
      position: () => this.live.get(view.name)?.position() ?? this.served.get(view.name) ?? 0,
    };
  }
}

export function viewNamed(views: readonly View[], name: string): View {
  const view = views.find((each) => each.name === name);
  if (view) return view;
  const names = views.map((each) => each.name).join(', ');
  throw new AgonError('PROJECTION.UNKNOWN', `There is no view ${name}. Views: ${names}.`);
}

/** How fast a build goes, from what it has done since it was started or resumed. */
export function paced({ progress, startedMs }: { progress: BuildProgress; startedMs: number }) {
  const seconds = Math.max(0.001, (performance.now() - startedMs) / 1000);
  const eventsPerSecond = Math.round(progress.events / seconds);
  const secondsLeft = eventsPerSecond === 0 ? 0 : Math.ceil((progress.total - progress.position) / eventsPerSecond);
  return { ...progress, eventsPerSecond, secondsLeft };
}

export function statusOf(parts: {
  view: View;
  serving: { version: number; position: number } | undefined;
  last: number;
  deadLetters: number;
  building: ProjectionStatus['build'] | undefined;
}): ProjectionStatus {
  const { view, serving, last, deadLetters, building } = parts;
  const position = serving?.position ?? 0;
  return {
    view: view.name,
    version: view.version,
    servingVersion: serving?.version ?? null,
    position,
    lagEvents: Math.max(0, last - position),
    deadLetters,
    build: building ?? null,
  };
}

/** Projectors keep their checkpoint with their rows; the bus asks for it here instead of keeping one of its own. */
export class ProjectionCheckpoints implements Checkpoints {
  private readonly byGroup: ReadonlyMap<string, Projector>;

  constructor(projectors: ReadonlyMap<string, Projector>) {
    this.byGroup = new Map([...projectors.values()].map((projector) => [groupOf(projector.view), projector]));
  }

  async load(group: string): Promise<number> {
    return (await this.byGroup.get(group)?.checkpoint()) ?? 0;
  }

  /** It has moved with the rows already. */
  async save(): Promise<void> {}

  async reset(group: string): Promise<void> {
    await this.byGroup.get(group)?.reset();
  }

  /** The projector buries by itself; what reaches this is trouble with the database, which is waited out. */
  async bury(letter: DeadLetter): Promise<void> {
    throw new AgonError(letter.code, letter.message);
  }

  async deadLetters(): Promise<readonly DeadLetter[]> {
    return [];
  }
}
