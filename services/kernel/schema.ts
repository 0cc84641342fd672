import { z } from 'zod';

const known = new WeakMap<z.ZodType, z.ZodType>();

/** The schema with zod's own compiled check in front, which accepts the same and answers the same, several times as fast. */
export function compiled<Schema extends z.ZodType>(schema: Schema): Schema {
  const before = known.get(schema) as Schema | undefined;
  if (before) return before;
  const made = z.compile(schema);
  known.set(schema, made);
  return made;
}
