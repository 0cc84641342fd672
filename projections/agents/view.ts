import type { AccountEvent } from '../../services/accounts/index.js';
import type { AgentEvent } from '../../services/agents/index.js';
import { NO_CODE } from '../../services/kernel/index.js';
import { rowRef } from '../engine/table.js';
import { defineView } from '../engine/view.js';
import { accounts, agents, versions } from './table.js';

/** Who is here: owners, their agents and the agents' versions. */
export const agentsView = defineView<AccountEvent | AgentEvent>({
  name: 'agents',
  version: 1,
  tables: [accounts, agents, versions],
  on: {
    OwnerRegistered: {
      apply: ({ data, time }, rows) => rows.put(accounts, { ...data, registeredAt: time }),
    },
    AgentSubmitted: {
      apply: ({ data, time }, rows) => {
        const { codeBytes, ...agent } = data;
        const { agentId, version, codeDigest } = data;
        rows.put(agents, { ...agent, submittedAt: time, updatedAt: time });
        rows.put(versions, { agentId, version, codeDigest, codeBytes, publishedAt: time });
      },
    },
    ExternalAgentRegistered: {
      apply: ({ data, time }, rows) => {
        const agent = { ...data, version: 1, codeDigest: NO_CODE, runtime: 'external' };
        rows.put(agents, { ...agent, submittedAt: time, updatedAt: time });
      },
    },
    AgentVersionPublished: {
      reads: ({ data }) => [rowRef(agents, data.agentId)],
      apply: ({ data, time }, rows) => {
        const { agentId, version, codeDigest, codeBytes, runtime } = data;
        const agent = rows.get(agents, agentId);
        if (agent) rows.put(agents, { ...agent, version, codeDigest, runtime, updatedAt: time });
        rows.put(versions, { agentId, version, codeDigest, codeBytes, publishedAt: time });
      },
    },
  },
});
