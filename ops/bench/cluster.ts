import { eventstore } from './eventstore.js';
import { kafka } from './kafka.js';
import { type BenchOptions, merged, type Report } from './rounds.js';
import { visible } from './visible.js';

/** What the cluster's engines cost beside their bare clients, one after the other. */
export const cluster = async (options: BenchOptions): Promise<Report> =>
  merged([await eventstore(options), await kafka(options), await visible(options)]);
