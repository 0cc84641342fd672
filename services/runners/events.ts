import { z } from 'zod';
import { defineEvents, type EventOf, publicKeyHex, version1 } from '../kernel/index.js';

export const runnerId = z.string().regex(/^r-[0-9a-f]{16}$/);

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const runnerEvents = defineEvents('runners', {
  RunnerRegistered: version1({ runnerId, publicKey: publicKeyHex }),
  RunnerRevoked: version1({ runnerId, reason: z.string().max(400) }),
});

export type RunnerEvent = EventOf<typeof runnerEvents>;
