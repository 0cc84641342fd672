import { z } from 'zod';
import { actsFor, defineCommand, slug, text } from '../kernel/index.js';

export class RegisterOwner extends defineCommand({
  type: 'RegisterOwner',
  data: z.object({ accountId: slug, displayName: z.string().trim().pipe(text(80, 1)) }),
  stream: (data) => `account-${data.accountId}`,
  allow: (actor, data) => actsFor(actor, data.accountId),
}) {}

export type AccountCommand = RegisterOwner;
