import { accounts } from '../../services/accounts/index.js';
import { agents } from '../../services/agents/index.js';
import { arena } from '../../services/arena/index.js';
import { payments } from '../../services/payments/index.js';
import { runners } from '../../services/runners/index.js';
import { wallet } from '../../services/wallet/index.js';

/** Every context there is. */
export const contexts = [accounts, agents, wallet, arena, payments, runners] as const;
