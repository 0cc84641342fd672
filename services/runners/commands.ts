import { z } from 'zod';
import { defineCommand, isStaff, publicKeyHex, text } from '../kernel/index.js';
import { runnerId } from './events.js';

const stream = (data: { runnerId: string }) => `runner-${data.runnerId}`;

export class RegisterRunner extends defineCommand({
  type: 'RegisterRunner',
  data: z.object({ runnerId, publicKey: publicKeyHex }),
  stream,
  allow: (actor) => isStaff(actor) || actor.role === 'runner',
}) {}

/** Ends the trust in a key for good: what it signs from now on is refused. */
export class RevokeRunner extends defineCommand({
  type: 'RevokeRunner',
  data: z.object({ runnerId, reason: text(400) }),
  stream,
  allow: isStaff,
}) {}

export type RunnerCommand = RegisterRunner | RevokeRunner;
