import { z } from 'zod';
import { PAGE_MAX } from '../../projections/engine/page.js';
import { slug } from '../../services/kernel/index.js';

/** Schemas with a name of their own in the document. */
export const named = z.registry<{ id: string }>();
export const name = <S extends z.ZodType>(id: string, schema: S): S => {
  named.add(schema, { id });
  return schema;
};

export const accountId = slug.describe('The account of an owner.').meta({ examples: ['gold'] });
export const agentId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,38}\.[a-z0-9][a-z0-9-]{0,38}$/, 'must be owner.name')
  .describe('The owner and the name of an agent.')
  .meta({ examples: ['gold.minimax'] });
export const matchId = z.uuid().describe('The id of a match.');
export const game = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be the name of a game')
  .describe('A game, as /v1/games lists them.')
  .meta({ examples: ['tic-tac-toe'] });

export const page = {
  first: z.int().min(1).max(PAGE_MAX).default(20).describe('How many rows at most.'),
  after: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,400}$/, 'must be what "next" of the page before said')
    .optional()
    .describe('Where the page before ended.'),
} as const;

export const paged = <S extends z.ZodType>(id: string, row: S) =>
  name(id, z.strictObject({ items: z.array(row), next: z.string().nullable().describe('Null for the last page.') }));

export const cents = z
  .string()
  .regex(/^-?\d+$/)
  .describe('Hundredths, as a string of digits.');
export const time = z.iso.datetime().describe('ISO 8601, UTC.');
export const digest = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe('SHA-256 in hex.');

export const Problem = name(
  'Problem',
  z.looseObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string().describe('Stable: what scripts may match on.'),
    detail: z.string().describe('What happened, and what to do.'),
  }),
);

export const Receipt = name(
  'Receipt',
  z.strictObject({
    id: z.string(),
    events: z.array(z.string()).describe('What happened; empty when it had happened before.'),
    position: z.int().describe('Where in the log.'),
    repeated: z.boolean().describe('Whether the Idempotency-Key was known.'),
  }),
);
