import { z } from 'zod';
import { defineEvents, type EventOf, slug } from '../kernel/index.js';

export const agentId = z.string().regex(/^[a-z0-9-]+\.[a-z0-9-]+$/, 'must be an agent like ada.minimax');
export const codeDigest = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hex');
export const runtime = z.enum(['javascript']);
const code = { version: z.int().min(1), codeDigest, codeBytes: z.int().min(1), runtime };

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const agentEvents = defineEvents('agents', {
  AgentSubmitted: {
    version: 1,
    schema: z.object({ agentId, ownerId: slug, name: slug, games: z.array(z.string()).min(1), ...code }),
  },
  AgentVersionPublished: {
    version: 1,
    schema: z.object({ agentId, ...code }),
  },
});

export type AgentEvent = EventOf<typeof agentEvents>;
