import { describe, expect, it } from 'vitest';
import { manualClock } from '../kernel/index.js';
import { ExpiringHolds, type WalletEvent } from './index.js';

const START = '2026-01-01T00:00:00.000Z';
const HOUR_MS = 3_600_000;
const purpose = { kind: 'run', runId: 'r1', agentId: 'ada.bot' } as const;
const hold = (accountId: string, holdId: string, expiresAt?: string): WalletEvent => ({
  type: 'FundsHeld',
  data: {
    accountId,
    holdId,
    amountCents: '1',
    currency: 'COMPUTE',
    purpose,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  },
});
const end = (type: 'HoldPosted' | 'HoldVoided' | 'HoldExpired', accountId: string, holdId: string): WalletEvent => ({
  type,
  data: { accountId, holdId, amountCents: '1', currency: 'COMPUTE', purpose },
});

describe('holds that run out', () => {
  const following = (...events: WalletEvent[]) => {
    const clock = manualClock(START);
    const holds = new ExpiringHolds(clock);
    events.forEach((event, i) => {
      holds.apply({ ...event, position: i + 1 });
    });
    return { clock, holds };
  };

  it('are due when their time has come, each account once', () => {
    const at = '2026-01-01T01:00:00.000Z';
    const { clock, holds } = following(
      hold('ada', 'a', at),
      hold('ada', 'b', at),
      hold('bob', 'a', at),
      hold('cyd', 'a'),
    );
    expect(holds.due()).toEqual([]);
    clock.advance(HOUR_MS);
    expect(holds.due()).toEqual(['ada', 'bob']);
  });

  it.each(['HoldPosted', 'HoldVoided', 'HoldExpired'] as const)('are forgotten after %s', (type) => {
    const { clock, holds } = following(hold('ada', 'a', START), hold('bob', 'a', START), end(type, 'ada', 'a'));
    clock.advance(1);
    expect(holds.due()).toEqual(['bob']);
  });

  it('keep the checkpoint before the first that has not ended', () => {
    const { holds } = following(hold('cyd', 'x'), hold('ada', 'a', START), hold('bob', 'a', START));
    expect(holds.firstOpen).toBe(2);
    holds.apply({ ...end('HoldExpired', 'ada', 'a'), position: 4 });
    expect(holds.firstOpen).toBe(3);
    holds.apply({ ...end('HoldPosted', 'bob', 'a'), position: 5 });
    expect(holds.firstOpen).toBeUndefined();
  });
});
