import { type EventStore, randomIds, type SealedEvent, systemClock } from '../../services/kernel/index.js';
import { type EventStorePorts, type ServerOptions, serveEventStore } from './server.js';

/** Keys of the endpoints that specs open. */
export const KEYS = { reader: 'reader-key', writer: 'writer-key' };

/** An endpoint over a log, for specs. Streams of notes are the arena's own where `own` says so. */
export function openEndpoint(store: EventStore, options: Partial<ServerOptions & EventStorePorts> = {}) {
  const { host = '127.0.0.1', port = 0, tls, ...ports } = options;
  return serveEventStore(
    {
      store,
      clock: systemClock,
      ids: randomIds,
      isOwn: (stream, type) => stream.startsWith('wallet-') || type === 'MatchSettled',
      check: (_event: SealedEvent) => {},
      accessOf: (key) =>
        key === KEYS.writer
          ? { actor: { id: 'ada', role: 'operator' }, write: true }
          : key === KEYS.reader
            ? { actor: { id: 'bob', role: 'auditor' }, write: false }
            : undefined,
      onInternalError: (error) => console.error(error),
      ...ports,
    },
    { host, port, ...(tls ? { tls } : {}) },
  );
}

export type Endpoint = Awaited<ReturnType<typeof openEndpoint>>;

/** How our own adapter reaches it: it sends its key without TLS, too. */
export const urlOf = ({ address }: Endpoint, key = KEYS.writer) => `esdb://any:${key}@${address}?tls=false`;
