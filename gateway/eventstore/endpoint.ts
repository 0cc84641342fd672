import type { Serving } from '../../proto/serve.js';
import { contexts } from '../../services/index.js';
import {
  AgonError,
  type Clock,
  checkedData,
  type EventStore,
  Folds,
  type Ids,
  type SealedEvent,
} from '../../services/kernel/index.js';
import { type folderLayout, sameToken } from '../../services/runtime/data-folder.js';
import type { Config } from '../../services/runtime/settings.js';
import { logReaderOf } from '../auth/api-key.js';
import { Directory } from '../auth/directory.js';
import { certificateIn, ownCertificates } from './certificate.js';
import { type Access, type EventStorePorts, serveEventStore } from './server.js';

/** Streams that the arena's contexts write, or will: nobody else puts events there. */
const TO_COME = ['dispute', 'evaluation', 'plan', 'proofs', 'task', 'tournament'];
const OWN_STREAMS = new RegExp(`^(${[...contexts.map(({ streams }) => streams), ...TO_COME].join('|')})s?-`);

interface EndpointOptions {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly config: Config;
  readonly paths: ReturnType<typeof folderLayout>;
  readonly operatorToken: string;
  readonly readerToken: string;
  /** A log that is open for reading only takes nothing, whatever the key. */
  readonly readOnly?: boolean;
  onInternalError(error: unknown): void;
}

export interface OpenEndpoint extends Serving {
  /** A connection string for a reader, with the place of its key instead of the key. */
  readonly url: string;
}

/** Opens the log to EventStoreDB's clients, on TLS unless the configuration says otherwise. */
export async function openEventStoreEndpoint(options: EndpointOptions, port: number): Promise<OpenEndpoint> {
  const { config, paths, store, clock, ids, onInternalError } = options;
  const { host, eventstoreInsecure: insecure, eventstoreCert: certFile, eventstoreKey: keyFile } = config;
  if (insecure && !['127.0.0.1', 'localhost', '::1'].includes(host)) {
    throw new AgonError('CONFIG.INVALID', `Without TLS the log is for this machine alone, not for ${host}.`);
  }
  const tls = insecure
    ? {}
    : {
        tls:
          certFile && keyFile
            ? certificateIn(certFile, keyFile)
            : ownCertificates(paths.eventstoreCert, paths.eventstoreKey, host, () => Date.parse(clock())),
      };
  const ports = { store, clock, ids, onInternalError, isOwn, check, accessOf: accessOf(options, insecure) };
  const serving = await serveEventStore(ports, { host, port, ...tls });
  const trust = certFile ? '' : `?tlsCAFile=${paths.eventstoreCert}`;
  const url = insecure
    ? `esdb://${serving.address}?tls=false`
    : `esdb://reader:$(cat ${paths.readerToken})@${serving.address}${trust}`;
  return { ...serving, url };
}

/**
 * The operator's token may write; the reader's may read, and so may API keys with the scope for it, by what this very log
 * says of them. Without TLS clients send no key: then anybody may read.
 */
function accessOf(
  { store, operatorToken, readerToken, readOnly = false }: EndpointOptions,
  insecure: boolean,
): EventStorePorts['accessOf'] {
  const directory = new Directory(new Folds({ store }).load);
  return async (key): Promise<Access | undefined> => {
    const reader: Access = { actor: { id: 'reader', role: 'auditor' }, write: false };
    if (key === undefined) return insecure ? reader : undefined;
    if (sameToken(key, operatorToken)) return { actor: { id: 'operator', role: 'operator' }, write: !readOnly };
    if (sameToken(key, readerToken)) return reader;
    const actor = await logReaderOf(directory, key);
    return actor && { actor, write: false };
  };
}

const catalogueOf = (type: string) => contexts.find(({ events }) => Object.hasOwn(events.specs, type))?.events;

export const isOwn = (stream: string, type: string): boolean =>
  OWN_STREAMS.test(stream) || catalogueOf(type) !== undefined;

/** What the arena's own write side checks before it records: that there is such an event, and that it fits its schema. */
export function check({ stream, type, version, data }: SealedEvent): void {
  const catalogue = catalogueOf(type);
  if (!catalogue) {
    if (OWN_STREAMS.test(stream)) throw new AgonError('EVENT.UNKNOWN_TYPE', `${stream} has no event ${type}.`);
    return;
  }
  const spec = catalogue.specs[type];
  if (!OWN_STREAMS.test(stream)) throw new AgonError('EVENT.INVALID', `${type} does not belong into ${stream}.`);
  if (version > (spec?.version ?? 0))
    throw new AgonError('EVENT.FUTURE_VERSION', `${type} has no version ${version} yet.`);
  // Older versions were checked by the schemas of their time; a log that is copied holds them.
  if (version === spec?.version) checkedData(catalogue, { type, data });
}
