import { asAgonError, type Consumer } from '../kernel/index.js';

/** Something of an arena that must work before it says that it is ready. */
export interface PartStatus {
  readonly part: string;
  readonly ready: boolean;
  readonly detail: string;
  /** The arena is ready without it. */
  readonly optional?: boolean;
}

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

  /** Whether it ended by that. */
  isFinal(name: string): boolean {
    return this.last.get(name)?.final ?? false;
  }

  private note(name: string, error: unknown, final: boolean): void {
    const { code, message } = asAgonError(error);
    this.last.set(name, { message: `${code}: ${message}`, position: this.positionOf(name), final, atMs: this.nowMs() });
  }

  private positionOf(name: string): number {
    return this.consumers.get(name)?.position() ?? 0;
  }
}
