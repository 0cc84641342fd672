import { accounts } from './accounts/index.js';
import { agents } from './agents/index.js';
import { arena } from './arena/index.js';
import { type Upcaster, upcasterOf } from './kernel/index.js';
import { payments } from './payments/index.js';
import { runners } from './runners/index.js';
import { sessions } from './sessions/index.js';
import { wallet } from './wallet/index.js';
import { webhooks } from './webhooks/index.js';

/** Every context there is. */
export const contexts = [accounts, agents, wallet, arena, payments, runners, sessions, webhooks] as const;

/** Reads every event of every context as its newest version. */
export const upcast: Upcaster = upcasterOf(contexts.map((context) => context.events));
