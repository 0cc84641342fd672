import { EntitySchema, type EntitySchemaColumnOptions } from 'typeorm';
import { deadLetters } from '../engine/query.js';
import { type AnyTable, columnName } from '../engine/table.js';
import { views } from '../views.js';

/** Every table whose rows have a description. The engine's own checkpoints move with commits, and are nobody's to read. */
export const tables: readonly AnyTable[] = [...views.flatMap((view) => view.tables), deadLetters as AnyTable];

/**
 * TypeORM's entities, made of the descriptions that views and sinks work by: columns are named in one place. Rows are
 * written by `unnest` and COPY and read by SQL; entities say what tables are to be like, and TypeORM whether they are.
 */
export const entities: readonly EntitySchema[] = tables.map(entityOf);

function entityOf(table: AnyTable): EntitySchema {
  const columns = Object.keys(table.columns).map((property) => [property, columnOf(table, property)]);
  // Directions and operator classes are the migrations' to say: TypeORM cannot.
  const indices = Object.entries(table.indexes ?? {}).map(([name, of]) => ({
    name,
    columns: [...of],
    synchronize: false as const,
  }));
  return new EntitySchema({ name: table.name, tableName: table.name, columns: Object.fromEntries(columns), indices });
}

function columnOf(table: AnyTable, property: string): EntitySchemaColumnOptions {
  const type = table.columns[property] ?? 'text';
  const sorted = [table.key, ...Object.values(table.indexes ?? {})].some((of) => of.includes(property));
  return {
    name: columnName(property),
    type,
    primary: table.key.includes(property),
    nullable: table.nullable?.includes(property) ?? false,
    ...(type === 'numeric' ? { precision: 38, scale: 0 } : {}),
    ...(type === 'text' && sorted ? { collation: 'C' } : {}),
  };
}
