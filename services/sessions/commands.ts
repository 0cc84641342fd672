import { z } from 'zod';
import { actsFor, commandsOn, slug } from '../kernel/index.js';
import { sessionEvents, sessionId, tokenHash } from './events.js';

export const streamOf = (id: string) => `session-${id}`;
const byItself = commandsOn(
  (data: { sessionId: string; accountId: string }) => streamOf(data.sessionId),
  (actor, { accountId }) => actsFor(actor, accountId, 'owner'),
);

export class OpenSession extends byItself('OpenSession', sessionEvents.specs.SessionOpened.schema) {}

/** Trades a refresh token for the next one. */
export class RefreshSession extends byItself(
  'RefreshSession',
  z.object({ sessionId, accountId: slug, tokenHash, nextHash: tokenHash }),
) {}

export class EndSession extends byItself('EndSession', z.object({ sessionId, accountId: slug })) {}
