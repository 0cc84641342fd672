import { z } from 'zod';
import { type Actor, actsFor, defineCommand, slug } from '../kernel/index.js';
import { sessionEvents, sessionId, tokenHash } from './events.js';

export const streamOf = (id: string) => `session-${id}`;
const stream = (data: { sessionId: string }) => streamOf(data.sessionId);
const itself = (actor: Actor, data: { accountId: string }) => actsFor(actor, data.accountId, 'owner');

export class OpenSession extends defineCommand({
  type: 'OpenSession',
  data: sessionEvents.specs.SessionOpened.schema,
  stream,
  allow: itself,
}) {}

/** Trades a refresh token for the next one. */
export class RefreshSession extends defineCommand({
  type: 'RefreshSession',
  data: z.object({ sessionId, accountId: slug, tokenHash, nextHash: tokenHash }),
  stream,
  allow: itself,
}) {}

export class EndSession extends defineCommand({
  type: 'EndSession',
  data: z.object({ sessionId, accountId: slug }),
  stream,
  allow: itself,
}) {}

export type SessionCommand = OpenSession | RefreshSession | EndSession;
