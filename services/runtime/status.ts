import type { DataSource } from 'typeorm';
import type { PartStatus } from '../../gateway/ports.js';
import type { ProjectionStatus, Projections } from '../../projections/engine/projections.js';
import { asAgonError, type Checkpoints, type Consumer, type EventStore } from '../kernel/index.js';

/** What has gone wrong with each consumer since it last got on. */
export class Trouble {
  private readonly last = new Map<string, { message: string; position: number; final: boolean; atMs: number }>();

  constructor(
    private readonly consumers: ReadonlyMap<string, Consumer>,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  retried(name: string, error: unknown): void {
    this.note(name, error, false);
  }

  ended(name: string, error: unknown): void {
    this.note(name, error, true);
  }

  /** Undefined once the consumer has moved on, or when it was not told again for so long. */
  of(name: string, withinMs = Number.POSITIVE_INFINITY): string | undefined {
    const last = this.last.get(name);
    if (!last || last.final) return last?.message;
    const passed = last.position !== this.positionOf(name) || this.nowMs() - last.atMs > withinMs;
    return passed ? undefined : last.message;
  }

  private note(name: string, error: unknown, final: boolean): void {
    const { code, message } = asAgonError(error);
    this.last.set(name, { message: `${code}: ${message}`, position: this.positionOf(name), final, atMs: this.nowMs() });
  }

  private positionOf(name: string): number {
    return this.consumers.get(name)?.position() ?? 0;
  }
}

interface Parts {
  readonly store: EventStore;
  readonly database: DataSource;
  readonly consumers: ReadonlyMap<string, Consumer>;
  readonly trouble: Trouble;
  readonly checkpoints: Checkpoints;
  readonly projections: Pick<Projections, 'list'>;
}

/** Every part with whether it works, and why not. */
export async function statusOf(parts: Parts): Promise<PartStatus[]> {
  const { store, database, consumers, trouble, checkpoints, projections } = parts;
  const position = await store.lastPosition();
  const views = await projections.list().catch((): ProjectionStatus[] => []);
  const follows = async (name: string, consumer: Consumer) => {
    const behind = position - consumer.position();
    const why = trouble.of(name);
    if (why !== undefined) throw new Error(`${behind} events behind; ${why}`);
    const view = views.find((each) => name === `projection.${each.view}`);
    return [`${behind} events behind`, ...(view ? remarks(view) : [])].join('; ');
  };
  return Promise.all([
    look('log', async () => `at position ${position}`),
    look('database', async () => {
      const [{ version }] = await database.query('SELECT version()');
      return `${version}`.split(' ').slice(0, 2).join(' ');
    }),
    look('dead letters', async () => {
      const [first, ...more] = await checkpoints.deadLetters();
      if (!first) return 'none';
      const { group, code, message } = first;
      throw new Error(
        `${group} gave up at position ${first.position}: ${code}: ${message} (${more.length} more). See "agon bus replay"`,
      );
    }),
    ...[...consumers].map(([name, consumer]) => look(name, () => follows(name, consumer))),
  ]);
}

/** A view that left an event out serves on: what it left out is told, and can be replayed. */
const remarks = ({ deadLetters, build }: ProjectionStatus): string[] => [
  ...(deadLetters > 0 ? [`${deadLetters} dead letters: agon projections dead-letters`] : []),
  ...(build ? [`being built anew, at ${build.position} of ${build.total}`] : []),
];

async function look(part: string, detail: () => Promise<string>): Promise<PartStatus> {
  try {
    return { part, ready: true, detail: await detail() };
  } catch (error) {
    return { part, ready: false, detail: error instanceof Error ? error.message : String(error) };
  }
}
