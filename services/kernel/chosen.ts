import { z } from 'zod';

/** What a text is for. A name is part of addresses; a title is shown beside others; a prompt is for machines. */
export type ContentKind = 'name' | 'title' | 'prompt' | 'chat';

type Mark = { readonly kind: ContentKind } | { readonly why: string };
const marks = z.registry<Mark>();

/** A schema of its own, as the same one may stand for a name that is chosen here and only repeated there. */
function marked<Schema extends z.ZodType>(schema: Schema, mark: Mark): Schema {
  const own = schema.clone() as Schema;
  marks.add(own, mark);
  return own;
}

/**
 * A field that somebody chooses and everybody will read: what people may call things holds for it.
 *
 * @example data: z.object({ accountId: slug, displayName: chosen('title', text(80, 1)) })
 */
export const chosen = <Schema extends z.ZodType>(kind: ContentKind, schema: Schema): Schema => marked(schema, { kind });

/** A field of free text that no rule of content holds for, and why not. */
export const notChosen = <Schema extends z.ZodType>(why: string, schema: Schema): Schema => marked(schema, { why });

/** A field of text somewhere in a schema, by its names from the outside in; `[]` is each of a list. */
export interface TextField {
  readonly path: readonly string[];
  readonly mark: Mark | undefined;
  /** Whether a pattern or a format says what it looks like, as of ids, digests and amounts. */
  readonly patterned: boolean;
}

/** Every text that data by this schema can hold. */
export function textsIn(schema: z.ZodType, path: readonly string[] = [], outer?: Mark): TextField[] {
  const mark = marks.get(schema) ?? outer;
  const { def } = schema as unknown as { def: Definition };
  switch (def.type) {
    case 'string':
      return [{ path, mark, patterned: isPatterned(schema) }];
    case 'object':
      return Object.entries(def.shape ?? {}).flatMap(([name, field]) => textsIn(field, [...path, name], mark));
    case 'array':
      return textsIn(def.element as z.ZodType, [...path, '[]'], mark);
    case 'record':
      return textsIn(def.valueType as z.ZodType, [...path, '[]'], mark);
    case 'union':
      return (def.options ?? []).flatMap((option) => textsIn(option, path, mark));
    case 'pipe':
      return textsIn(def.out as z.ZodType, path, mark);
    default:
      return def.innerType ? textsIn(def.innerType, path, mark) : [];
  }
}

interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly element?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly out?: z.ZodType;
  readonly innerType?: z.ZodType;
}

const isPatterned = (schema: z.ZodType) => {
  const { format, checks = [] } = schema.def as { format?: string; checks?: readonly z.core.$ZodCheck[] };
  return format !== undefined || checks.some(({ _zod: { def } }) => def.check === 'string_format');
};

/** A field that rules of content hold for. */
export interface ChosenField {
  readonly path: readonly string[];
  readonly kind: ContentKind;
}

export const chosenIn = (schema: z.ZodType): readonly ChosenField[] =>
  textsIn(schema).flatMap(({ path, mark }) => (mark && 'kind' in mark ? [{ path, kind: mark.kind }] : []));

/** What stands at the path of a field: more than one where it leads into lists. */
export function valuesAt(data: unknown, [name, ...rest]: readonly string[]): unknown[] {
  if (name === undefined) return [data];
  if (typeof data !== 'object' || data === null) return [];
  const inside = name === '[]' ? Object.values(data) : [(data as Readonly<Record<string, unknown>>)[name]];
  return inside.flatMap((each) => valuesAt(each, rest));
}
