import { z } from 'zod';
import { actsFor, agentRuntime, chosen, commandsOn, notChosen, slug, text } from '../kernel/index.js';
import { codeDigest } from './events.js';

const code = { codeDigest, codeBytes: z.int().min(1), runtime: agentRuntime };
const games = z
  .array(notChosen('names a game of the arena', text(40, 1)))
  .min(1)
  .max(32);
const newAgent = { ownerId: slug, name: chosen('name', slug), games };
const knownName = notChosen('was held to the rules when it was chosen', slug);

/** An agent is known by its owner and its name, so that nobody can take a name twice. */
export const agentIdOf = (ownerId: string, name: string) => `${ownerId}.${name}`;

const byOwner = commandsOn(
  (data: { ownerId: string; name: string }) => `agent-${agentIdOf(data.ownerId, data.name)}`,
  (actor, data) => actsFor(actor, data.ownerId),
);

export class SubmitAgent extends byOwner('SubmitAgent', z.object({ ...newAgent, ...code })) {}
export class PublishVersion extends byOwner('PublishVersion', z.object({ ownerId: slug, name: knownName, ...code })) {}

/** Makes an agent known that plays from outside. */
export class RegisterExternalAgent extends byOwner('RegisterExternalAgent', z.object(newAgent)) {}
