import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressOf, isReachable } from '../../sandbox-runner/index.js';
import { webhookPost } from '../../services/adapters/webhook-post.js';
import { AgonError, type Clock, derivedId, type Load } from '../../services/kernel/index.js';
import type { Host } from '../../services/runtime/host.js';
import { definePart } from '../../services/runtime/part.js';
import { writeSide } from '../../services/runtime/write-side.js';
import {
  arrived,
  attempt,
  type DispatchPorts,
  secretFrom,
  secretText,
  webhooksIn,
} from '../../services/webhooks/index.js';
import type { WebhookPort } from '../ports.js';
import { dispatchWebhooks } from './dispatcher.js';

/** A dispatcher that ended by itself begins again after this. */
const AGAIN_MS = 1_000;

/** Tells webhooks what happened; one process at a time does. */
export const webhooks = definePart({
  name: 'webhooks',
  needs: { writeSide },
  start: async ({ writeSide: { execute, load } }, host) => {
    const { engines, onRetry } = host;
    const [store, checkpoints, makeBus, lease] = await Promise.all([
      engines.log(),
      engines.checkpoints(),
      engines.tail(),
      engines.lease('webhooks'),
    ]);
    const ports = await deliveryPortsOf(host);
    const { signal } = host;
    const telling = async () => {
      for (;;) {
        const held = await lease.acquire(signal);
        const over = AbortSignal.any([signal, held.lost]);
        try {
          const told = await dispatchWebhooks({ store, load, checkpoints, makeBus, ports, execute, onRetry });
          if (!over.aborted) await Promise.race([once(over, 'abort'), told.done]).finally(() => told.stop());
        } catch (error) {
          // What was under way is told again by the next, with the same ids.
          if (!signal.aborted) onRetry('webhooks', error);
        }
        await held.release();
        await sleep(AGAIN_MS, undefined, { signal });
      }
    };
    const done = telling().catch((error: unknown) => host.giveUp(error, 'webhooks'));
    return { value: undefined, stop: () => done };
  },
});

export async function deliveryPortsOf({ engines, clock, config }: Host): Promise<DispatchPorts> {
  return courierPorts((await engines.folder()).webhookKey(), clock, config.webhookPrivate);
}

/** How endpoints are called: signed with keys made from `key`, and never inside unless that was asked for. */
export function courierPorts(key: string, clock: Clock, allowPrivate: boolean): DispatchPorts {
  const resolve = (host: string) => lookup(host, { all: true });
  const post = webhookPost({ addressOf: (host) => addressOf(host, allowPrivate, resolve), allowPlain: allowPrivate });
  return {
    clock,
    post,
    random: Math.random,
    wait: (ms, signal) => sleep(ms, undefined, { signal }),
    secretOf: (webhookId) => secretFrom(key, webhookId),
  };
}

/** What the gateway may do with webhooks. */
export function webhookPort(load: Load, ports: DispatchPorts, allowPrivate: boolean): WebhookPort {
  return {
    list: () => webhooksIn(load),
    secretOf: (webhookId) => secretText(ports.secretOf(webhookId)),
    assertAllowed: (text) => {
      const { protocol, hostname } = new URL(text);
      const host = hostname.replace(/^\[|\]$/g, '');
      const inside = /^[\d.]+$|:/.test(host)
        ? !isReachable(host, allowPrivate)
        : /(^|\.)localhost$/.test(host) && !allowPrivate;
      if (!inside && (protocol === 'https:' || allowPrivate)) return;
      throw new AgonError('WEBHOOKS.BAD_URL', 'A webhook is an https address on the public internet.');
    },
    test: async (webhook) => {
      const id = derivedId('webhook test', webhook.webhookId, ports.clock());
      const body = JSON.stringify({
        type: 'WebhookTest',
        timestamp: ports.clock(),
        data: { webhookId: webhook.webhookId },
      });
      const posted = await attempt(ports, webhook, { deliveryId: id, body });
      return { delivered: arrived(posted), status: posted.status ?? null, detail: posted.why };
    },
  };
}
