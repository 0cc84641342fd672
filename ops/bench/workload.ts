import { hash, randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { arenaEvents } from '../../services/arena/index.js';
import { type EventMeta, type EventSpec, GENESIS_HASH, type SealedEvent, seal } from '../../services/kernel/index.js';
import { walletEvents } from '../../services/wallet/index.js';

/** What is written is written in the current versions: upcasting is not what is measured. */
const specs: Readonly<Record<string, EventSpec>> = { ...arenaEvents.specs, ...walletEvents.specs };

/** A stream's events, sealed one after the other, ready to be appended. */
export class StreamWriter {
  private revision = -1;
  private prevHash = GENESIS_HASH;

  constructor(readonly stream: string) {}

  /** Events of one command share its meta, and with it the command's id. */
  next(type: string, data: Readonly<Record<string, unknown>>, meta: EventMeta = newEventMeta()): SealedEvent {
    const event = seal({
      id: randomUUID(),
      type,
      version: specs[type]?.version ?? 1,
      stream: this.stream,
      revision: ++this.revision,
      time: new Date().toISOString(),
      data,
      meta,
      prevHash: this.prevHash,
    });
    this.prevHash = event.hash;
    return event;
  }
}

export function newEventMeta(): EventMeta {
  const commandId = randomUUID();
  const actor = { id: 'ada', role: 'operator' } as const;
  return { commandId, inputHash: hash('sha256', commandId), correlationId: commandId, causationId: commandId, actor };
}

/** As many wallets as writers, each with its share of the events. */
export function walletStreams(writers: number, eventsTotal: number): SealedEvent[][] {
  return Array.from({ length: writers }, (_, writer) => {
    const accountId = `player-${writer}`;
    const stream = new StreamWriter(`wallet-${accountId}`);
    return Array.from({ length: Math.ceil(eventsTotal / writers) }, (_, i) => {
      const matchId = randomUUID();
      return stream.next('FundsHeld', {
        accountId,
        amountCents: `${100 + i}`,
        currency: 'PLAY',
        holdId: `${matchId}:${i % 2}`,
        purpose: { kind: 'match', matchId, seat: i % 2 },
      });
    });
  });
}

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/**
 * Every writer works through its own list, one item at a time. Returns items a second, from first to last answer. What was
 * made to get there is collected before the clock runs: one contender needs more preparation than another.
 */
export async function drive<T>(
  lists: readonly (readonly T[])[],
  work: (item: T, list: number) => Promise<unknown>,
): Promise<number> {
  collectGarbage();
  const startedMs = performance.now();
  await Promise.all(
    lists.map(async (items, list) => {
      for (const item of items) await work(item, list);
    }),
  );
  const count = lists.reduce((sum, items) => sum + items.length, 0);
  return (count / (performance.now() - startedMs)) * 1000;
}
