import { z } from 'zod';
import { actsFor, defineCommand, slug, text } from '../kernel/index.js';
import { apiKeyId, scopes, secretHash } from './events.js';

const stream = (data: { accountId: string }) => `account-${data.accountId}`;

export class RegisterOwner extends defineCommand({
  type: 'RegisterOwner',
  data: z.object({ accountId: slug, displayName: z.string().trim().pipe(text(80, 1)) }),
  stream,
  allow: (actor, data) => actsFor(actor, data.accountId),
}) {}

/** A key with which an agent, or a script, acts for its owner within the scopes. Only the secret's hash comes here. */
export class IssueApiKey extends defineCommand({
  type: 'IssueApiKey',
  data: z.object({
    accountId: slug,
    keyId: apiKeyId,
    name: text(80),
    scopes,
    agents: z.array(text(80, 3)).min(1).max(32).optional(),
    secretHash,
  }),
  stream,
  allow: (actor, data) => actsFor(actor, data.accountId),
}) {}

export class RevokeApiKey extends defineCommand({
  type: 'RevokeApiKey',
  data: z.object({ accountId: slug, keyId: apiKeyId, reason: text(200) }),
  stream,
  allow: (actor, data) => actsFor(actor, data.accountId),
}) {}

export type AccountCommand = RegisterOwner | IssueApiKey | RevokeApiKey;
