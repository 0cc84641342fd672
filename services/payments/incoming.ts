import { AgonError, type Clock, type Command, derivedId, type Handled, newMeta } from '../kernel/index.js';
import { TakeNotice } from './commands.js';
import type { PaymentProvider } from './provider.js';

/** Stripe's own are a few kilobytes. */
export const WEBHOOK_BYTES_MAX = 256 * 1024;

interface WebhookPorts {
  readonly provider: PaymentProvider;
  readonly clock: Clock;
  execute(command: Command): Promise<Handled>;
}

/** Takes what a webhook tells, once for each event id. When it returns, what was told is in the log. */
export async function takeWebhook({ provider, clock, execute }: WebhookPorts, body: Buffer, signature: string) {
  if (body.length > WEBHOOK_BYTES_MAX) {
    throw new AgonError('PAYMENTS.TOO_LARGE', `A webhook has at most ${WEBHOOK_BYTES_MAX} bytes.`);
  }
  const { eventId, notice } = await provider.readWebhook(body, signature);
  if (!notice) return { received: true, outcome: 'ignored' };
  const meta = newMeta({ id: 'stripe', role: 'system' }, { id: derivedId('stripe', eventId), clock });
  const { repeated, events } = await execute(new TakeNotice({ accountId: notice.accountId, notice }, meta));
  return { received: true, outcome: repeated ? 'repeated' : events.length > 0 ? 'taken' : 'known' };
}
