import { leaseContract } from './lease.contract.js';
import { MemoryLease } from './lease.js';

leaseContract('memory', () => new MemoryLease());
