import { setTimeout as sleep } from 'node:timers/promises';
import {
  AgonError,
  asAgonError,
  type Bus,
  type Checkpoints,
  type Consumer,
  type DeadLetter,
  type EventStore,
  isAgonError,
  type Upcaster,
} from '../../services/kernel/index.js';
import { type CommitReport, groupOf, Projector } from './projector.js';
import { rebuild } from './rebuild.js';
import {
  assertOwnRules,
  type BuildProgress,
  type BuildRequest,
  type BuildStatus,
  type BuriedEvent,
  type RebuildingSink,
  type Standing,
} from './sink.js';
import type { View } from './view.js';

const BATCH_EVENTS = 2_048;
const RETRY_MS = { first: 50, max: 2_000 };
/** How often those who asked for a build hear of it. */
const TELL_MS = 500;

export interface ProjectionsOptions {
  readonly views: readonly View[];
  readonly sink: RebuildingSink;
  readonly store: EventStore;
  readonly upcast: Upcaster;
  makeBus(checkpoints: Checkpoints): Bus;
  /** Batch sizes; small ones make more places at which a kill can strike. */
  readonly batchEvents?: number;
  readonly buildBatchEvents?: number;
  /** How often to look whether another process has asked for a build; never, when left out. */
  readonly lookEveryMs?: number;
  onCommitted?(report: CommitReport): void;
  /** The rows of a view were replaced as a whole, or were found to be others than those that commits told of. */
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
  /** Positions behind: events, or bytes where the store counts those. */
  readonly lagEvents: number;
  readonly deadLetters: number;
  readonly build: BuildStatus | null;
}

interface Building {
  readonly done: Promise<void>;
  readonly startedMs: number;
  progress: BuildProgress;
  trouble: string | null;
  toldMs: number;
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
    const { views, sink, upcast, onCommitted, onSwapped } = options;
    const projectorOf = (view: View) => new Projector(view, sink, upcast, onCommitted, () => onSwapped?.(view));
    this.projectors = new Map(views.map((view) => [view.name, projectorOf(view)]));
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
      const current = await this.isCurrent(view, serving);
      if (current) await this.follow(view);
      if (!current || (await this.isWanted(view))) this.build(view);
    }
    if (this.options.lookEveryMs !== undefined) void this.look(this.options.lookEveryMs);
  }

  /** Starts to build a view anew, or goes on with a build. It is under way when this resolves. */
  async ask(name: string): Promise<void> {
    const view = this.viewNamed(name);
    await this.options.sink.ask(view);
    if (!this.buildings.has(name)) this.build(view);
  }

  /** The same, and resolves when the new rows serve. */
  async rebuild(name: string): Promise<void> {
    await this.ask(name);
    await this.buildings.get(name)?.done;
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
    const consumer = await this.bus.consume(options, (events) => projector.follow(events));
    this.live.set(view.name, consumer);
    consumer.done.catch((error: unknown) => this.failed.get(view.name)?.(error));
  }

  private build(view: View): void {
    const begun = { position: 0, total: 0, events: 0, phase: 'building' as const };
    const startedMs = performance.now();
    const done = this.buildUntilDone(view);
    this.buildings.set(view.name, { done, startedMs, progress: begun, trouble: null, toldMs: startedMs - TELL_MS });
    done.catch(() => {}).finally(() => this.buildings.delete(view.name));
  }

  /** Whatever passes, a database that restarts for instance, is waited for; the build goes on where it was. */
  private async buildUntilDone(view: View): Promise<void> {
    const { sink } = this.options;
    const { signal } = this.stopping;
    for (let failures = 0; ; failures++) {
      try {
        while (await sink.alone(view, () => this.buildIfNeeded(view)));
        if (!this.live.has(view.name)) await this.follow(view);
        return;
      } catch (error) {
        if (signal.aborted) throw error;
        if (!isAgonError(error, 'PROJECTION.BUILDING')) this.noteTrouble(view, error);
      }
      const waitMs = Math.min(RETRY_MS.max, RETRY_MS.first * 2 ** Math.min(failures, 8));
      await sleep(waitMs, undefined, { signal });
    }
  }

  /**
   * Another process may have built it while we waited for our turn: then there is nothing to do. False then, and true when
   * a build was swapped in.
   */
  private async buildIfNeeded(view: View): Promise<boolean> {
    const { sink, store, upcast, buildBatchEvents } = this.options;
    const projector = this.projectors.get(view.name) as Projector;
    const serving = await sink.serving(view);
    if (!(await this.isWanted(view))) {
      if (serving && serving.version > view.version) assertOwnRules(view, serving);
      if (await this.isCurrent(view, serving)) {
        // It may be our own build that serves, swapped in by a commit whose answer was lost.
        await projector.checkpoint();
        return false;
      }
    }
    await sink.ask(view);
    const built = await rebuild({
      view,
      sink,
      store,
      upcast,
      signal: this.stopping.signal,
      ...(buildBatchEvents === undefined ? {} : { batchEvents: buildBatchEvents }),
      exclusively: (work) => projector.exclusively(work),
      onProgress: (progress) => this.noteProgress(view, progress),
    });
    if (!built.swapped) throw new AgonError('PROJECTION.INTERRUPTED', `The build of ${view.name} was interrupted.`);
    this.served.set(view.name, built.position);
    this.options.onSwapped?.(view);
    return true;
  }

  private async isCurrent(view: View, serving: Standing | undefined): Promise<boolean> {
    return serving ? serving.version === view.version : (await this.options.store.lastPosition()) === 0;
  }

  /** Asked for, or begun and not ended. What newer code asked for or began is left to it. */
  private async isWanted(view: View): Promise<boolean> {
    const { sink } = this.options;
    const asked = (await sink.asked()).get(view.name);
    return isFor(view, asked) || (await sink.building(view))?.version === view.version;
  }

  /** A database that is away is asked again. */
  private async look(everyMs: number): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await sleep(everyMs, undefined, { signal }).catch(() => {});
      const asked = await this.options.sink.asked().catch(() => new Map<string, BuildRequest>());
      const wanted = this.options.views.filter((view) => isFor(view, asked.get(view.name)));
      for (const view of wanted) if (!signal.aborted && !this.buildings.has(view.name)) this.build(view);
    }
  }

  private noteProgress(view: View, progress: BuildProgress): void {
    const building = this.buildings.get(view.name);
    if (building) {
      Object.assign(building, { progress, trouble: null });
      this.tell(view, building);
    }
    this.options.onProgress?.(view, progress);
  }

  /** What goes wrong again and again is told once. */
  private noteTrouble(view: View, error: unknown): void {
    const building = this.buildings.get(view.name);
    const { code, message } = asAgonError(error);
    const trouble = `${code}: ${message}`;
    if (building?.trouble === trouble) return;
    this.options.onBuildFailed?.(view, error);
    if (!building) return;
    Object.assign(building, { trouble, toldMs: 0 });
    this.tell(view, building);
  }

  private tell(view: View, building: Building): void {
    if (performance.now() - building.toldMs < TELL_MS) return;
    building.toldMs = performance.now();
    this.options.sink.tell(view, paced(building)).catch(() => {});
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
      active: () => this.live.get(view.name)?.active?.() !== false,
    };
  }
}

const isFor = (view: View, asked: BuildRequest | undefined) => asked !== undefined && asked.version <= view.version;

export function viewNamed(views: readonly View[], name: string): View {
  const view = views.find((each) => each.name === name);
  if (view) return view;
  const names = views.map((each) => each.name).join(', ');
  throw new AgonError('PROJECTION.UNKNOWN', `There is no view ${name}. Views: ${names}.`);
}

/** How fast a build goes, from what it has done since it was started or resumed. */
export function paced(build: { progress: BuildProgress; startedMs: number; trouble?: string | null }): BuildStatus {
  const { progress, startedMs, trouble = null } = build;
  const seconds = Math.max(0.001, (performance.now() - startedMs) / 1000);
  const eventsPerSecond = Math.round(progress.events / seconds);
  // By positions, not by events: what is left is known in positions only, and not every log counts events with them.
  const positionsPerSecond = (progress.position - (progress.from ?? 0)) / seconds;
  const left = progress.total - progress.position;
  const secondsLeft = positionsPerSecond > 0 ? Math.ceil(left / positionsPerSecond) : 0;
  return { ...progress, eventsPerSecond, secondsLeft, trouble };
}

/** How old the first event is that is not taken in. Positions tell how far it is, but not in the same measure everywhere. */
export async function secondsBehind(
  log: Pick<EventStore, 'readAll'>,
  position: number,
  nowIso: string,
): Promise<number> {
  const [next] = await log.readAll({ after: position, limit: 1 });
  return next ? Math.max(0, (Date.parse(nowIso) - Date.parse(next.time)) / 1000) : 0;
}

function statusOf(parts: {
  view: View;
  serving: { version: number; position: number } | undefined;
  last: number;
  deadLetters: number;
  building: BuildStatus | undefined;
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

/** How a view stands, for those who do not keep it themselves. */
export async function statusFrom(
  sink: RebuildingSink,
  store: Pick<EventStore, 'lastPosition'>,
  view: View,
): Promise<ProjectionStatus> {
  const [serving, begun, asked] = await Promise.all([sink.serving(view), sink.building(view), sink.asked()]);
  const [last, letters] = await Promise.all([store.lastPosition(), sink.letters(view)]);
  const told = asked.get(view.name)?.status;
  const unpaced = { total: last, events: 0, phase: 'building' as const, eventsPerSecond: 0, secondsLeft: 0 };
  const position = begun?.position ?? told?.position ?? 0;
  const building = begun || asked.has(view.name) ? { ...unpaced, trouble: null, ...told, position } : undefined;
  return statusOf({ view, serving, last, deadLetters: letters.length, building });
}

/** Projectors keep their checkpoint with their rows; the bus asks for it here instead of keeping one of its own. */
class ProjectionCheckpoints implements Checkpoints {
  private readonly byGroup: ReadonlyMap<string, Projector>;

  constructor(projectors: ReadonlyMap<string, Projector>) {
    this.byGroup = new Map([...projectors.values()].map((projector) => [groupOf(projector.view), projector]));
  }

  async load(group: string): Promise<number> {
    return (await this.byGroup.get(group)?.begin()) ?? 0;
  }

  async saved(group: string): Promise<number> {
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

  async unbury(): Promise<void> {}

  async deadLetters(): Promise<readonly DeadLetter[]> {
    return [];
  }
}
