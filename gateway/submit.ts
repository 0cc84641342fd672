import { agentIdOf, PublishVersion, SubmitAgent } from '../services/agents/index.js';
import {
  type AgentRuntime,
  AgonError,
  type Command,
  type CommandMeta,
  derivedId,
  isAgonError,
  runtimeNamed,
} from '../services/kernel/index.js';
import type { GatewayPorts } from './ports.js';

type Ports = Pick<GatewayPorts, 'artifacts' | 'checkSource' | 'sourceBytesMax'>;

/** Code as an author hands it in. */
export interface Submission {
  readonly ownerId: string;
  readonly name: string;
  readonly games: readonly string[];
  readonly source: string;
  readonly runtime: string;
}

/** Keeps the code and submits it, or a new version of an agent that exists. Code that cannot play is refused first. */
export async function submitCode<T>(
  ports: Ports,
  { ownerId, name, games, source, runtime: runtimeName }: Submission,
  meta: CommandMeta,
  send: (agentId: string, command: Command) => Promise<T>,
): Promise<T> {
  const runtime = runtimeNamed(runtimeName);
  const content = Buffer.from(source);
  await assertRunnable(ports, source, runtime, content.length);
  const codeDigest = await ports.artifacts.put(content);
  const code = { codeDigest, codeBytes: content.length, runtime };
  const agentId = agentIdOf(ownerId, name);
  try {
    return await send(agentId, new SubmitAgent({ ownerId, name, games: [...games], ...code }, meta));
  } catch (error) {
    if (!isAgonError(error, 'AGENTS.EXISTS')) throw error;
    const publishing = { ...meta, id: derivedId(meta.id, 'publish') };
    return send(agentId, new PublishVersion({ ownerId, name, ...code }, publishing));
  }
}

async function assertRunnable(ports: Ports, source: string, runtime: AgentRuntime, bytes: number): Promise<void> {
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
