import { z } from 'zod';
import { agentRuntime, defineEvents, type EventOf, slug, version1 } from '../kernel/index.js';

const agentId = z.string().regex(/^[a-z0-9-]+\.[a-z0-9-]+$/, 'must be an agent like ada.minimax');
export const codeDigest = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hex');
const code = { version: z.int().min(1), codeDigest, codeBytes: z.int().min(1), runtime: agentRuntime };

/** Version 1 knew one runtime and named it as version 2 does. */
const onlyJavaScript = (data: Record<string, unknown>) => data;

// The names and fields of these events are the storage format. Add; never rename, never remove.
export const agentEvents = defineEvents('agents', {
  AgentSubmitted: {
    version: 2,
    schema: z.object({ agentId, ownerId: slug, name: slug, games: z.array(z.string()).min(1), ...code }),
    upcast: { 1: onlyJavaScript },
  },
  AgentVersionPublished: {
    version: 2,
    schema: z.object({ agentId, ...code }),
    upcast: { 1: onlyJavaScript },
  },
  /** An agent that plays from outside, over the network: there is no code of it, and so no version but the first. */
  ExternalAgentRegistered: version1({ agentId, ownerId: slug, name: slug, games: z.array(z.string()).min(1) }),
});

export type AgentEvent = EventOf<typeof agentEvents>;
