import { MemorySink } from './memory.js';
import { sinkContract } from './sink.contract.js';

const sink = new MemorySink();
sinkContract('memory', async () => sink);
