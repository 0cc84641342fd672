import type { DataSource } from 'typeorm';
import { type Page, type PageRequest, pageOf } from './page.js';
import { defineTable, type RowOf } from './table.js';

/** An event that a view could not take in, as the engine keeps it beside the view's checkpoint. */
export const deadLetters = defineTable({
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
type DeadLetterRow = RowOf<typeof deadLetters>;

export const listDeadLetters = (
  db: DataSource,
  request: PageRequest & { view?: string | undefined },
): Promise<Page<DeadLetterRow>> =>
  pageOf(db, deadLetters, request, {
    order: ['view', 'position'],
    ...(request.view === undefined ? {} : { where: ['view = $1'], values: [request.view] }),
  });
