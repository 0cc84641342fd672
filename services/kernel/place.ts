import { isAgonError } from './errors.js';
import type { EventStore } from './ports.js';

/**
 * Whether a log can be read on after this position. One beyond its end was noted of a log that was put back from a backup
 * since, and one where no event stands belongs to another log.
 */
export async function isPlaceIn(log: Pick<EventStore, 'lastPosition' | 'readAll'>, position: number): Promise<boolean> {
  if (position === 0) return true;
  if (position > (await log.lastPosition())) return false;
  try {
    await log.readAll({ after: position, limit: 1 });
    return true;
  } catch (error) {
    if (isAgonError(error, 'STORE.BAD_POSITION')) return false;
    throw error;
  }
}
