import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { derivedId } from '../../services/kernel/index.js';
import type { Books, Delivery, Thing } from './books.js';

/** How unkind the delivery is. The same seed is unkind in the same places. */
export interface Mischief {
  readonly seed: string;
  /** The share of events that are delivered more than once, from 0 to 1. */
  readonly duplicates: number;
  /** Each event waits a while of up to so long, so that they overtake each other. */
  readonly delayMsMax: number;
  /** The share of answers that get lost: the receiver has done its work, and hears of the event again. */
  readonly lostAnswers: number;
  /** The longest wait between two tries. */
  readonly retryMsMax: number;
}

export const KIND: Mischief = { seed: 'kind', duplicates: 0, delayMsMax: 0, lostAnswers: 0, retryMsMax: 5_000 };

const RETRY_MS = 100;
const ATTEMPTS_MAX = 1_000;
const ANSWER_MS_MAX = 10_000;
const IDLE_MS = 10;

export type WebhookDispatcher = ReturnType<typeof dispatcherOf>;

/** `t=…,v1=…`: the HMAC-SHA-256 of time and body, as Stripe signs. */
export function signatureOf(body: string, secret: string, timeS: number): string {
  const v1 = createHmac('sha256', secret).update(`${timeS}.${body}`).digest('hex');
  return `t=${timeS},v1=${v1}`;
}

/** A number from 0 to 1 that depends on nothing but these parts. */
export const chance = (...parts: readonly (string | number)[]): number =>
  Number.parseInt(derivedId('chance', ...parts).slice(0, 8), 16) / 0xffff_ffff;

/** Delivers webhooks until they are accepted: signed, at least once, in any order. */
export function dispatcherOf(books: Books, endpoint: { url(): string; readonly secret: string }, mischief: Mischief) {
  const { deliveries } = books.pages;
  let stopping = false;
  const underWay = new Map<string, Promise<void>>();

  const send = (event: Thing) => {
    const copies = chance(mischief.seed, event.id, 'copies') < mischief.duplicates ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) {
      const delayMs = chance(mischief.seed, event.id, copy, 'delay') * mischief.delayMsMax;
      const id = `${event.id}:${copy}`;
      deliveries[id] = { id, eventId: event.id, attempt: 1, dueMs: books.nowMs() + delayMs };
    }
  };

  const attempt = async (delivery: Delivery) => {
    const body = JSON.stringify(books.get(delivery.eventId), null, 2);
    const accepted = await post(body).catch(() => false);
    const { seed, lostAnswers } = mischief;
    const isLost = delivery.attempt === 1 && chance(seed, delivery.id, 'lost') < lostAnswers;
    if ((accepted && !isLost) || delivery.attempt >= ATTEMPTS_MAX) delete deliveries[delivery.id];
    else {
      const waitMs = Math.min(mischief.retryMsMax, RETRY_MS * 2 ** (delivery.attempt - 1));
      deliveries[delivery.id] = { ...delivery, attempt: delivery.attempt + 1, dueMs: books.nowMs() + waitMs };
    }
    books.save();
  };

  const post = async (body: string): Promise<boolean> => {
    const signature = signatureOf(body, endpoint.secret, books.nowS());
    const headers = { 'content-type': 'application/json; charset=utf-8', 'stripe-signature': signature };
    const signal = AbortSignal.timeout(ANSWER_MS_MAX);
    const response = await fetch(endpoint.url(), { method: 'POST', headers, body, signal });
    await response.arrayBuffer();
    return response.ok;
  };

  const loop = (async () => {
    while (!stopping) {
      const nowMs = books.nowMs();
      for (const delivery of Object.values(deliveries)) {
        if (delivery.dueMs > nowMs || underWay.has(delivery.id)) continue;
        const done = attempt(delivery).finally(() => underWay.delete(delivery.id));
        underWay.set(delivery.id, done);
      }
      await sleep(IDLE_MS);
    }
    await Promise.all(underWay.values());
  })();

  return {
    send,
    /** Resolves when nothing is left to be delivered, or it has stopped. */
    idle: async () => {
      while (!stopping && Object.keys(deliveries).length > 0) await sleep(IDLE_MS);
    },
    stop: () => {
      stopping = true;
      return loop;
    },
  };
}
