import type { Clock, RecordedEvent } from '../kernel/index.js';
import type { WalletEvent } from './events.js';

interface Ending {
  readonly position: number;
  readonly accountId: string;
  readonly expiresAt: string;
}

/** The holds that will run out by themselves, folded from the log. It only says when to ask; the wallet decides. */
export class ExpiringHolds {
  static readonly types: readonly WalletEvent['type'][] = ['FundsHeld', 'HoldPosted', 'HoldVoided', 'HoldExpired'];

  private readonly open = new Map<string, Ending>();

  constructor(private readonly clock: Clock) {}

  apply(event: Pick<RecordedEvent, 'position'> & WalletEvent): void {
    if (!('holdId' in event.data)) return;
    const { accountId, holdId } = event.data;
    const key = `${accountId}/${holdId}`;
    if (event.type !== 'FundsHeld') this.open.delete(key);
    else if (event.data.expiresAt !== undefined) {
      this.open.set(key, { position: event.position, accountId, expiresAt: event.data.expiresAt });
    }
  }

  /** The accounts with a hold whose time has come. */
  due(): readonly string[] {
    const now = this.clock();
    const over = [...this.open.values()].filter(({ expiresAt }) => expiresAt <= now);
    return [...new Set(over.map(({ accountId }) => accountId))];
  }

  /** Where the first hold stands that waits for its end: whoever starts before it misses none. */
  get firstOpen(): number | undefined {
    return this.open.values().next().value?.position;
  }
}
