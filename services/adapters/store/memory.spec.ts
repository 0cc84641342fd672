import { MemoryEventStore } from './memory.js';
import { storeContract } from './store.contract.js';

storeContract('memory', { open: async () => new MemoryEventStore() });
