import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { stripeProvider } from '../../services/adapters/stripe.js';
import { AgonError, Secret } from '../../services/kernel/index.js';
import type { PaymentProvider } from '../../services/payments/index.js';
import type { Host } from '../../services/runtime/host.js';
import type { Sandbox, SandboxOptions } from '../stripe-sandbox/server.js';

export interface SandboxChoice extends Pick<SandboxOptions, 'mischief' | 'lostCalls' | 'port'> {}

/** Stripe by the key of the configuration; nobody without one. */
export function stripeProviderOf(host: Host): PaymentProvider | undefined {
  const { stripeSecretKey: secretKey, stripeWebhookSecret: webhookSecret, stripeUrl: url } = host.config;
  if (!secretKey || !webhookSecret) return undefined;
  return providerOf(host, { secretKey, webhookSecret, url });
}

/** The stand-in for Stripe, with keys of this run alone: nobody else ever needs them. */
export async function sandboxProvider(
  host: Host,
  choice: SandboxChoice,
  start: (options: SandboxOptions) => Promise<Sandbox>,
): Promise<{ provider: PaymentProvider; sandbox: Sandbox }> {
  const { config, clock } = host;
  if (config.stripeSecretKey) {
    const why = 'There is a key for Stripe itself: start without --stripe-sandbox, or without it.';
    throw new AgonError('CONFIG.INVALID', why);
  }
  const [secretKey, webhookSecret] = [`sk_test_${random()}`, `whsec_${random()}`];
  const file = join(config.dataDir, 'stripe-sandbox.json');
  const webhookUrl = () => `${host.url()}/v1/stripe/webhook`;
  const sandbox = await start({ ...choice, secretKey, webhookSecret, clock, file, webhookUrl });
  const keys = { secretKey: new Secret(secretKey), webhookSecret: new Secret(webhookSecret) };
  return { provider: providerOf(host, { ...keys, url: sandbox.url }), sandbox };
}

function providerOf(
  host: Host,
  keys: { readonly secretKey: Secret; readonly webhookSecret: Secret; readonly url: string },
): PaymentProvider {
  const returnUrl = () => `${host.publicUrl()}/v1/stripe/return`;
  const provider = stripeProvider({ ...keys, clock: host.clock, returnUrl });
  return host.metrics.provider(provider) ?? provider;
}

const random = () => randomBytes(18).toString('hex');
