import { z } from 'zod';
import { defineCommand, isStaff, notChosen, publicKeyHex, text } from '../kernel/index.js';
import { runnerId } from './events.js';

const stream = (data: { runnerId: string }) => `runner-${data.runnerId}`;

export class RegisterRunner extends defineCommand({
  type: 'RegisterRunner',
  data: z.object({ runnerId, publicKey: publicKeyHex }),
  stream,
  // A runner speaks for itself.
  allow: (actor, data) => isStaff(actor) || (actor.role === 'runner' && actor.id === data.runnerId),
}) {}

/** Ends the trust in a key for good: what it signs from now on is refused. */
export class RevokeRunner extends defineCommand({
  type: 'RevokeRunner',
  data: z.object({ runnerId, reason: notChosen('is what staff says', text(400)) }),
  stream,
  allow: isStaff,
}) {}
