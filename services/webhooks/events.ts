import { z } from 'zod';
import { defineEvents, type EventOf, notChosen, slug, version1 } from '../kernel/index.js';

/** What an endpoint can be told. Nothing in them is secret, and none of them helps somebody who plays. */
export const webhookTypes = [
  ...(['MatchSettled', 'MatchVoided', 'MatchReversed'] as const),
  ...(['AgentSubmitted', 'AgentVersionPublished', 'ExternalAgentRegistered'] as const),
  ...(['CreditsGranted', 'FundsDeposited', 'FundsCredited', 'HoldRefused'] as const),
  ...(['PaymentReceived', 'PaymentRefunded', 'WithdrawalPaid', 'WithdrawalFailed', 'PlanChanged'] as const),
] as const;

/** Whose events: an owner's, or everybody's, for those who run the arena. */
export const EVERYBODY = '*';
export const listener = z.union([slug, z.literal(EVERYBODY)]);

export const webhookId = z.uuid();
export const endpointUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).max(2_000);
export const types = z.array(z.enum(webhookTypes)).min(1).max(webhookTypes.length);

export const failure = z.object({
  /** The same for every attempt of this event to this endpoint, and for every replay. */
  deliveryId: z.uuid(),
  eventId: z.uuid(),
  position: z.int().min(1),
  attempts: z.int().min(1),
  why: notChosen('is what the arena found', z.string().max(400)),
});

const endpoint = { webhookId, accountId: listener };

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const webhookEvents = defineEvents('webhooks', {
  WebhookAdded: version1({ ...endpoint, url: endpointUrl, types }),
  WebhookRemoved: version1(endpoint),
  /** All attempts have failed: a dead letter, until somebody asks for it again. */
  DeliveryFailed: version1({ ...endpoint, ...failure.shape }),
  /** Too many dead letters: nothing more is tried until somebody asks. */
  WebhookPaused: version1(endpoint),
  ReplayAsked: version1({ ...endpoint, deliveries: z.array(z.uuid()).max(200) }),
  /** A dead letter that was asked for again has arrived. What arrives at first is not worth an event. */
  DeliveryReplayed: version1({ ...endpoint, deliveryId: z.uuid() }),
});

export type WebhookEvent = EventOf<typeof webhookEvents>;
export type DeliveryFailure = z.output<typeof failure>;
