/**
 * What one side pushes and the other reads when it can. A generator would not do: one that waits for the next value
 * cannot be told to stop before it comes.
 */
export class Channel<T> implements AsyncIterableIterator<T> {
  private readonly values: T[] = [];
  private readonly readers: ((result: IteratorResult<T>) => void)[] = [];
  private stop: () => void = () => {};
  private over = false;

  /** Past `max` values unread nothing more is kept, and `onFull` is told once. */
  constructor(
    private readonly max: number,
    private readonly onFull: () => void,
  ) {}

  /** What to do when the reader leaves, or when it is over; at once if that was before. */
  onStop(stop: () => void): this {
    if (this.over) stop();
    else this.stop = stop;
    return this;
  }

  push(value: T): void {
    if (this.over) return;
    const reader = this.readers.shift();
    if (reader) reader({ value, done: false });
    else this.values.push(value);
    if (this.values.length <= this.max) return;
    this.values.length = 0;
    this.end();
    this.onFull();
  }

  /** What was pushed can still be read. */
  end(): void {
    if (this.over) return;
    this.over = true;
    this.stop();
    for (const reader of this.readers.splice(0)) reader({ value: undefined, done: true });
  }

  next(): Promise<IteratorResult<T>> {
    if (this.values.length > 0) return Promise.resolve({ value: this.values.shift() as T, done: false });
    if (this.over) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.readers.push(resolve));
  }

  async return(): Promise<IteratorResult<T>> {
    this.values.length = 0;
    this.end();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

/**
 * The newest of what changes, for readers who need not hear of every change: while one is told, the others are
 * forgotten but for the last.
 *
 * @example const stop = newest(() => counts(), (value) => channel.push(value), (look) => live.onQueue(look));
 */
export function newest<T>(
  look: () => Promise<T>,
  tell: (value: T) => void,
  options: { readonly restMs: number; readonly onError: (error: unknown) => void; on(changed: () => void): () => void },
): () => void {
  let [stopped, busy, asked, told] = [false, false, false, ''];
  let timer: NodeJS.Timeout | undefined;
  const changed = async () => {
    asked = true;
    if (busy || stopped) return;
    [busy, asked] = [true, false];
    try {
      const value = await look();
      const text = JSON.stringify(value);
      if (!stopped && text !== told) tell(value);
      told = text;
    } catch (error) {
      options.onError(error);
    }
    timer = setTimeout(() => {
      busy = false;
      if (asked) void changed();
    }, options.restMs);
  };
  const off = options.on(() => void changed());
  void changed();
  return () => {
    stopped = true;
    clearTimeout(timer);
    off();
  };
}

/** One source for all who listen: it is started for the first of them and stopped after the last. */
export function shared<T>(
  start: (tell: (value: T) => void) => () => void,
): (listener: (value: T) => void) => () => void {
  const listeners = new Set<(value: T) => void>();
  let last: { readonly value: T } | undefined;
  let stop: (() => void) | undefined;
  return (listener) => {
    listeners.add(listener);
    if (last) listener(last.value);
    stop ??= start((value) => {
      last = { value };
      for (const each of listeners) each(value);
    });
    return () => {
      if (!listeners.delete(listener) || listeners.size > 0) return;
      stop?.();
      stop = last = undefined;
    };
  };
}
