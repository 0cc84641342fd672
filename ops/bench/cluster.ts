import { eventstore } from './eventstore.js';
import { kafka } from './kafka.js';
import type { BenchOptions, Report } from './rounds.js';
import { visible } from './visible.js';

/** What the cluster's engines cost beside their bare clients, one after the other. */
const parts: readonly ((options: BenchOptions) => Promise<Report>)[] = [eventstore, kafka, visible];

export async function cluster(options: BenchOptions): Promise<Report> {
  const reports: Report[] = [];
  for (const part of parts) reports.push(await part(options));
  return {
    results: Object.assign({}, ...reports.map(({ results }) => results)),
    ratios: Object.assign({}, ...reports.map(({ ratios }) => ratios)),
    targets: Object.assign({}, ...reports.map(({ targets }) => targets)),
    notes: reports.flatMap(({ notes }) => notes),
  };
}
