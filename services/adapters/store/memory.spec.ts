import { MemoryEventStore } from './memory.js';
import { storeContract } from './store.contract.js';

storeContract('memory', { counts: true, open: async () => new MemoryEventStore() });
storeContract('memory with gaps', { open: async () => new MemoryEventStore({ gaps: true }) });
