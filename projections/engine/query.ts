import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf } from './page.js';
import { defineTable } from './table.js';

/** An event that a view could not take in, as the engine keeps it beside the view's checkpoint. */
export interface DeadLetterRow {
  readonly view: string;
  readonly position: bigint;
  readonly eventId: string;
  readonly type: string;
  readonly version: number;
  readonly code: string;
  readonly message: string;
}

export const deadLetters = defineTable<DeadLetterRow>({
  name: 'dead_letters',
  key: ['view', 'position'],
  columns: {
    view: 'text',
    position: 'int8',
    eventId: 'text',
    type: 'text',
    version: 'int4',
    code: 'text',
    message: 'text',
  },
});

export const listDeadLetters = (
  db: DataSource,
  request: PageRequest & { view?: string | undefined },
): Promise<Page<DeadLetterRow>> =>
  pageOf(db, deadLetters, request, {
    order: ['view', 'position'],
    ...(request.view === undefined ? {} : { where: ['view = $1'], values: [request.view] }),
  });
