import { definePart } from '../../services/runtime/part.js';

const PORT = 2113;

/** The log to EventStoreDB's clients. */
export const eventstoreServer = definePart({
  name: 'eventstore',
  needs: {},
  start: async (_needs, host) => {
    const { config, engines, clock, ids, onInternalError } = host;
    const [folder, store] = await Promise.all([engines.folder(), engines.log()]);
    // EventStoreDB's messages take a while to load, and most arenas do without them.
    const { openEventStoreEndpoint } = await import('./endpoint.js');
    const operatorToken = config.operatorToken?.reveal() ?? folder.operatorToken();
    const tokens = { operatorToken, readerToken: folder.readerToken() };
    const parts = { store, clock, ids, config, paths: folder.paths, ...tokens, onInternalError };
    const value = await openEventStoreEndpoint(parts, config.eventstorePort ?? PORT);
    host.addresses.eventstore = value.url;
    return { value, ready: async () => value.url, stop: () => value.close() };
  },
});
