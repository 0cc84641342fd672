import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { type Clock, derivedId, type Ids } from '../../services/kernel/index.js';

/** One of Stripe's objects. */
export interface Thing {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** An answer that the same key gets again. */
interface CachedAnswer {
  /** Method, path and parameters of the first request with the key. */
  readonly request: string;
  readonly status: number;
  readonly body: unknown;
  readonly atS: number;
}

/** A webhook that is still to be delivered. */
export interface Delivery {
  readonly id: string;
  readonly eventId: string;
  readonly attempt: number;
  readonly dueMs: number;
}

interface Pages {
  readonly things: Record<string, Thing>;
  readonly order: string[];
  readonly keys: Record<string, CachedAnswer>;
  readonly deliveries: Record<string, Delivery>;
  /** What the platform has, per currency: a transfer cannot pay more. */
  readonly balance: Record<string, number>;
}

/** All that the stand-in knows. With a file it survives its own restart; every change is on disk before the answer. */
export class Books {
  readonly pages: Pages;

  constructor(
    private readonly clock: Clock,
    private readonly ids: Ids,
    private readonly file?: string,
  ) {
    const empty: Pages = { things: {}, order: [], keys: {}, deliveries: {}, balance: {} };
    this.pages = file && existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Pages) : empty;
  }

  nowMs(): number {
    return Date.parse(this.clock());
  }

  nowS(): number {
    return Math.floor(this.nowMs() / 1000);
  }

  /** Ids as Stripe writes them. */
  newId(prefix: string): string {
    return `${prefix}_${derivedId('stripe', this.ids()).replaceAll('-', '').slice(0, 24)}`;
  }

  make(prefix: string, object: string, fields: Record<string, unknown>): Thing {
    const thing = { id: this.newId(prefix), object, created: this.nowS(), livemode: false, ...fields } as Thing;
    this.pages.things[thing.id] = thing;
    this.pages.order.push(thing.id);
    return thing;
  }

  change(id: string, fields: Record<string, unknown>): Thing {
    const thing = { ...this.get(id), ...fields } as Thing;
    this.pages.things[id] = thing;
    return thing;
  }

  find(id: string): Thing | undefined {
    return this.pages.things[id];
  }

  get(id: string): Thing {
    const thing = this.find(id);
    if (!thing) throw new Error(`There is no ${id}.`);
    return thing;
  }

  /** Newest first, as Stripe lists. */
  list(object: string): Thing[] {
    return this.pages.order
      .map((id) => this.get(id))
      .filter((thing) => thing.object === object)
      .reverse();
  }

  balance(currency: string): number {
    return this.pages.balance[currency] ?? 0;
  }

  move(currency: string, amount: number): void {
    this.pages.balance[currency] = this.balance(currency) + amount;
  }

  save(): void {
    if (!this.file) return;
    writeFileSync(`${this.file}.new`, JSON.stringify(this.pages), { mode: 0o600 });
    renameSync(`${this.file}.new`, this.file);
  }
}
