import { z } from 'zod';
import type { DomainEvent } from './decider.js';
import { AgonError, invariant } from './errors.js';
import type { RecordedEvent } from './event.js';

/** One event type: its current version and schema, and how each older version becomes the next. */
export interface EventSpec<Schema extends z.ZodType = z.ZodType> {
  readonly version: number;
  readonly schema: Schema;
  /** `upcast[1]` turns version 1 into version 2, and so on; every version ever written keeps its step. */
  readonly upcast?: Readonly<Record<number, (data: Record<string, unknown>) => Record<string, unknown>>>;
}

export interface Catalogue<Specs extends Record<string, EventSpec> = Record<string, EventSpec>> {
  readonly context: string;
  readonly specs: Specs;
}

/** The union of a catalogue's events, as deciders and views see them. */
export type EventOf<C> =
  C extends Catalogue<infer Specs>
    ? { [Type in keyof Specs & string]: DomainEvent<Type, z.output<Specs[Type]['schema']>> }[keyof Specs & string]
    : never;

/**
 * Declares a context's events. Their names and fields are the storage format: add, never rename or remove.
 *
 * @example
 * export const counterEvents = defineEvents('counter', {
 *   Added: version1({ by: z.int() }),
 * });
 */
export function defineEvents<const Specs extends Record<string, EventSpec>>(
  context: string,
  specs: Specs,
): Catalogue<Specs> {
  for (const [type, spec] of Object.entries(specs)) {
    for (let version = 1; version < spec.version; version++) {
      invariant(spec.upcast?.[version], `${type} version ${version} has no upcaster to ${version + 1}.`);
    }
  }
  return { context, specs };
}

/** An event that is still as it was first written, by the fields of its data. */
export const version1 = <Shape extends z.ZodRawShape>(fields: Shape) => ({ version: 1, schema: z.object(fields) });

const compiledSchemas = new WeakMap<z.ZodType, z.ZodType>();

/**
 * The schema with zod's own compiled check in front of it, made when it is first used. It takes the same and answers the
 * same, several times as fast; a schema that zod cannot compile, because it refers to itself, is given back as it is.
 */
export function compiled<Schema extends z.ZodType>(schema: Schema): Schema {
  const known = compiledSchemas.get(schema) as Schema | undefined;
  if (known) return known;
  const made = z.compile(schema);
  compiledSchemas.set(schema, made);
  return made;
}

/** Checks an event's data against its current schema before it is recorded. */
export function checkedData(catalogue: Catalogue, event: DomainEvent): { version: number; data: unknown } {
  const spec = catalogue.specs[event.type];
  if (!spec) throw new AgonError('EVENT.UNKNOWN_TYPE', `${catalogue.context} has no event ${event.type}.`);
  const parsed = compiled(spec.schema).safeParse(event.data);
  if (!parsed.success) {
    throw new AgonError('EVENT.INVALID', `${event.type} does not fit its schema: ${z.prettifyError(parsed.error)}`);
  }
  return { version: spec.version, data: parsed.data };
}

/** Reads events of all versions as their newest one. */
export interface Upcaster {
  (event: RecordedEvent): RecordedEvent;
  /** Whether this build knows the type at all. */
  knows(type: string): boolean;
}

/** Merges catalogues into the one reader that every fold and every view uses. */
export function upcasterOf(catalogues: readonly Catalogue[]): Upcaster {
  const specs = new Map<string, EventSpec>();
  for (const catalogue of catalogues) {
    for (const [type, spec] of Object.entries(catalogue.specs)) {
      invariant(!specs.has(type), `Two contexts declare the event ${type}.`);
      specs.set(type, spec);
    }
  }
  const upcast = (event: RecordedEvent): RecordedEvent => {
    const spec = specs.get(event.type);
    if (spec !== undefined && spec.version === event.version) return event;
    return upcastSlowly(event, spec);
  };
  return Object.assign(upcast, { knows: (type: string) => specs.has(type) });
}

function upcastSlowly(event: RecordedEvent, spec: EventSpec | undefined): RecordedEvent {
  const at = `Event ${event.id} at position ${event.position}`;
  if (!spec) throw new AgonError('EVENT.UNKNOWN_TYPE', `${at} is a ${event.type}, which this build does not know.`);
  if (event.version > spec.version) {
    throw new AgonError(
      'EVENT.FUTURE_VERSION',
      `${at} is ${event.type} version ${event.version}; this build reads up to ${spec.version}. Upgrade Agon.`,
    );
  }
  let data = event.data as Record<string, unknown>;
  for (let version = event.version; version < spec.version; version++) {
    const step = spec.upcast?.[version];
    invariant(step, `${event.type} version ${version} has no upcaster.`);
    data = step(data);
  }
  return { ...event, version: spec.version, data };
}
