import { createHmac } from 'node:crypto';
import { type Clock, derivedId, type RecordedEvent } from '../kernel/index.js';
import type { Webhook } from './decider.js';
import { EVERYBODY } from './events.js';

/** Together about an hour and a half: a receiver may be deployed, or its operator woken up. */
export const ATTEMPTS_MAX = 8;
const WAIT_MS = { first: 1_000, factor: 4, most: 3_600_000 } as const;

/** One message to one endpoint. Its id is the same on every attempt, before and after a crash. */
export interface Message {
  readonly deliveryId: string;
  readonly body: string;
}

/** What became of one attempt. `status` is missing when nobody answered. */
export interface PostResult {
  readonly status?: number;
  readonly why: string;
}

export interface DispatchPorts {
  readonly clock: Clock;
  /** From 0 to 1: many that fail at once shall not come back at once. */
  random(): number;
  wait(ms: number, signal: AbortSignal): Promise<void>;
  post(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<PostResult>;
  secretOf(webhookId: string): Buffer;
}

export const deliveryIdOf = (webhookId: string, eventId: string): string => derivedId('webhook', webhookId, eventId);

/** An owner hears of what is its own: its matches, agents and money. */
export function concerns({ accountId, types }: Webhook, { type, data }: Pick<RecordedEvent, 'type' | 'data'>): boolean {
  if (!types.includes(type)) return false;
  if (accountId === EVERYBODY) return true;
  const {
    accountId: whose,
    ownerId,
    seats = [],
  } = data as {
    accountId?: string;
    ownerId?: string;
    seats?: readonly { accountId: string }[];
  };
  return whose === accountId || ownerId === accountId || seats.some((seat) => seat.accountId === accountId);
}

export function messageOf({ webhookId }: Webhook, event: Omit<RecordedEvent, 'prevHash' | 'hash' | 'meta'>): Message {
  const { id, type, version, time, stream, position, data } = event;
  const body = JSON.stringify({ type, timestamp: time, data, id, version, stream, position });
  return { deliveryId: deliveryIdOf(webhookId, id), body };
}

/** As Standard Webhooks have it: HMAC-SHA256 over id, time and body, so that none of them can be exchanged. */
export function signed(secret: Buffer, id: string, timestampS: number, body: string): string {
  return `v1,${createHmac('sha256', secret).update(`${id}.${timestampS}.${body}`).digest('base64')}`;
}

/** The key of one endpoint, made from the arena's own: nothing has to be kept that could be read. */
export const secretFrom = (key: string, webhookId: string): Buffer =>
  createHmac('sha256', key).update(`webhook ${webhookId}`).digest();

export const secretText = (secret: Buffer): string => `whsec_${secret.toString('base64')}`;

/** One attempt. Everything but an answer of the two hundreds is a failure; redirects are not followed. */
export async function attempt(
  ports: DispatchPorts,
  { webhookId, url }: Webhook,
  message: Message,
): Promise<PostResult> {
  const timestampS = Math.floor(Date.parse(ports.clock()) / 1000);
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'agon-webhooks/1',
    'webhook-id': message.deliveryId,
    'webhook-timestamp': `${timestampS}`,
    'webhook-signature': signed(ports.secretOf(webhookId), message.deliveryId, timestampS, message.body),
  };
  return ports.post(url, headers, message.body);
}

export const arrived = ({ status = 0 }: PostResult): boolean => status >= 200 && status < 300;

/** Tries until it arrives or is given up; undefined when it has arrived. */
export async function deliver(
  ports: DispatchPorts,
  webhook: Webhook,
  message: Message,
  signal: AbortSignal,
): Promise<{ readonly attempts: number; readonly why: string } | undefined> {
  for (let attempts = 1; ; attempts++) {
    const posted = await attempt(ports, webhook, message);
    signal.throwIfAborted();
    if (arrived(posted)) return undefined;
    if (attempts >= ATTEMPTS_MAX) return { attempts, why: posted.why.slice(0, 400) };
    await ports.wait(waitMs(attempts, ports.random()), signal);
  }
}

/** Four times as long after each failure, of which the second half is left to chance. */
export function waitMs(failures: number, chance: number): number {
  const full = Math.min(WAIT_MS.most, WAIT_MS.first * WAIT_MS.factor ** (failures - 1));
  return Math.round(full / 2 + (full / 2) * chance);
}
