import { Readable } from 'node:stream';
import { z } from 'zod';
import { statementCsv } from '../../projections/balances/statement.js';
import { takeWebhook } from '../../services/payments/index.js';
import { assertMayRead } from '../auth/actor.js';
import { providerIn } from '../ports.js';
import { defineRoute } from './route.js';
import { accountId, name } from './schemas.js';

const currency = z
  .string()
  .regex(/^[A-Z]{3,10}$/, 'must be a currency as USD or PLAY')
  .optional()
  .describe('Only this currency.');

export const accountRoutes = [
  defineRoute({
    id: 'getStatement',
    path: '/v1/accounts/{accountId}/statement.csv',
    summary: "What happened to a player's money, for a spreadsheet. The owner's own, or staff's to see.",
    params: { accountId },
    query: { currency },
    answer: { type: 'text/csv', description: 'Oldest first, each movement with the balance after it.' },
    handle: async ({ params, query, reply, context }, { ports }) => {
      assertMayRead(await context(), params.accountId);
      reply.type('text/csv; charset=utf-8').header('content-disposition', 'attachment; filename="statement.csv"');
      return Readable.from(statementCsv(ports.database, params.accountId, query.currency));
    },
  }),
];

export const paymentRoutes = [
  defineRoute({
    id: 'takeStripeWebhook',
    method: 'POST',
    path: '/v1/stripe/webhook',
    access: 'public',
    summary: 'Where Stripe tells what was paid. The proof is the signature over the body as it was sent.',
    headers: { 'stripe-signature': z.string().optional().describe('As Stripe makes it.') },
    takes: { as: 'bytes', type: 'application/json', description: "Stripe's event, byte by byte." },
    answer: { description: 'It was taken, or was known.', schema: name('StripeTaken', z.looseObject({})) },
    refuses: [409, 413, 502],
    handle: ({ body, request }, { ports }) => {
      const signature = request.headers['stripe-signature'];
      const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
      const taking = { provider: providerIn(ports), clock: ports.clock, execute: ports.execute };
      return takeWebhook(taking, bytes, Array.isArray(signature) ? (signature[0] ?? '') : (signature ?? ''));
    },
  }),
  defineRoute({
    id: 'returnFromStripe',
    path: '/v1/stripe/return',
    access: 'public',
    summary: 'Where people come back to. It proves nothing: the balance follows the webhook.',
    query: {
      payment: z.string().max(200).optional().describe('Of the payment; for people.'),
      done: z.string().max(20).optional().describe('Whether the page was left after paying.'),
    },
    answer: { type: 'text/plain', description: 'A sentence.' },
    handle: ({ query, reply }) => {
      reply.type('text/plain; charset=utf-8');
      return query.done
        ? 'Thank you. The payment shows as soon as Stripe confirms it. You can close this page.'
        : 'Nothing was paid. You can close this page.';
    },
  }),
];
