import {
  agentFrom,
  agentIdOf,
  agents,
  PublishVersion,
  RegisterExternalAgent,
  SubmitAgent,
} from '../../services/agents/index.js';
import {
  type AgentRuntime,
  AgonError,
  derivedId,
  isAgonError,
  type Load,
  runtimeNamed,
  slug,
} from '../../services/kernel/index.js';
import { assertActsOn, metaOf, type RequestContext } from '../auth/actor.js';
import type { GatewayPorts } from '../ports.js';
import { type AskPorts, assertAccount, assertGame, type Receipt, send } from './ask.js';
import { type PlanPorts, plansOf } from './plans.js';

export type AgentPorts = AskPorts &
  PlanPorts &
  Pick<GatewayPorts, 'load' | 'games' | 'artifacts' | 'checkSource' | 'sourceBytesMax'>;

export interface NewAgent {
  readonly ownerId: string;
  readonly name: string;
  readonly games: string[];
}

/** Code as an author hands it in. */
export interface Code {
  readonly source: string;
  readonly runtime: string;
}

/**
 * Keeps code and submits it, or a new version of an agent that exists. Code that cannot play is refused first, and what
 * somebody may not submit is not even read.
 */
export async function submitAgent(
  ports: AgentPorts,
  context: RequestContext,
  agent: NewAgent,
  read: () => Promise<Code>,
): Promise<Receipt> {
  const meta = metaOf(ports, context, 'SubmitAgent');
  const agentId = await assertSubmits(ports, context, agent);
  const { source, runtime: runtimeName } = await read();
  return plansOf(ports).newAgent(agent.ownerId, agentId, async () => {
    const runtime = runtimeNamed(runtimeName);
    const content = Buffer.from(source);
    await assertRunnable(ports, source, runtime, content.length);
    const codeDigest = await ports.artifacts.put(content);
    const code = { codeDigest, codeBytes: content.length, runtime };
    try {
      return await send(ports, agentId, new SubmitAgent({ ...agent, ...code }, meta));
    } catch (error) {
      if (!isAgonError(error, 'AGENTS.EXISTS')) throw error;
      const { ownerId, name } = agent;
      const publishing = { ...meta, id: derivedId(meta.id, 'publish') };
      return send(ports, agentId, new PublishVersion({ ownerId, name, ...code }, publishing));
    }
  });
}

/** Makes an agent known that plays from outside. */
export async function registerExternalAgent(
  ports: AgentPorts,
  context: RequestContext,
  agent: NewAgent,
): Promise<Receipt> {
  const meta = metaOf(ports, context, 'RegisterExternalAgent');
  const agentId = await assertSubmits(ports, context, agent);
  const register = () => send(ports, agentId, new RegisterExternalAgent(agent, meta));
  return plansOf(ports).newAgent(agent.ownerId, agentId, register);
}

async function assertSubmits(
  ports: AgentPorts,
  context: RequestContext,
  { ownerId, name, games }: NewAgent,
): Promise<string> {
  const agentId = agentIdOf(ownerId, name);
  assertActsOn(context, agentId, 'SubmitAgent');
  await assertAccount(ports, ownerId);
  for (const game of games) assertGame(ports, game);
  return agentId;
}

async function assertRunnable(ports: AgentPorts, source: string, runtime: AgentRuntime, bytes: number): Promise<void> {
  const { sourceBytesMax } = ports;
  if (bytes > sourceBytesMax) {
    throw new AgonError('AGENTS.BROKEN_CODE', `The code has ${bytes} bytes; the limit is ${sourceBytesMax}.`);
  }
  const checked = await ports.checkSource(source, runtime);
  if (!checked.ok) {
    const { rule, detail } = checked;
    throw new AgonError('AGENTS.BROKEN_CODE', `The code cannot play (${rule}): ${detail}`, { rule });
  }
}

/** An agent by its own events, which are there as soon as it is. */
export async function agentIn(load: Load, agentId: string) {
  const isName = agentId.split('.').length === 2 && agentId.split('.').every((part) => slug.safeParse(part).success);
  const agent = isName ? agentFrom((await load(agents, agentId, 'tail')).state) : undefined;
  if (!agent) throw new AgonError('AGENTS.UNKNOWN', `There is no agent ${agentId}. Register it first.`);
  return agent;
}

export function assertPlays(agentId: string, { games }: { readonly games: readonly string[] }, game: string): void {
  if (games.includes(game)) return;
  throw new AgonError('AGENTS.OTHER_GAME', `${agentId} plays ${games.join(', ')}, not ${game}.`);
}
