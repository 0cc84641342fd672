import { z } from 'zod';
import { defineEvents, type EventOf, slug } from '../kernel/index.js';

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const accountEvents = defineEvents('accounts', {
  OwnerRegistered: {
    version: 1,
    // A public handle and a public name only: what is personal must be erasable, and the log is not.
    schema: z.object({ accountId: slug, displayName: z.string().min(1).max(80) }),
  },
});

export type AccountEvent = EventOf<typeof accountEvents>;
