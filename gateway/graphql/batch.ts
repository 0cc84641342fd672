import { setImmediate as soon } from 'node:timers/promises';

/**
 * Gathers what is asked for one by one and fetches it together: a page of two hundred matches with their turns is two
 * statements, not two hundred and one. What was fetched is kept, so one of these serves one request.
 *
 * @example const turnsOf = batched(async (ids) => grouped(await turns(db, ids), (turn) => turn.matchId));
 */
export function batched<Value>(
  fetch: (keys: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
): (key: string) => Promise<Value | undefined> {
  const asked = new Map<string, Promise<Value | undefined>>();
  let gathering: { readonly keys: string[]; readonly found: Promise<ReadonlyMap<string, Value>> } | undefined;

  const gather = () => {
    const keys: string[] = [];
    const found = soon().then(() => {
      gathering = undefined;
      return fetch(keys);
    });
    return { keys, found };
  };

  return (key) => {
    const known = asked.get(key);
    if (known) return known;
    gathering ??= gather();
    gathering.keys.push(key);
    const value = gathering.found.then((values) => values.get(key));
    asked.set(key, value);
    return value;
  };
}

/** The same for what takes arguments: those who ask with the same ones are answered together. */
export function batchedBy<Args, Value>(
  fetch: (args: Args, keys: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
): (args: Args, key: string) => Promise<Value | undefined> {
  const loads = new Map<string, (key: string) => Promise<Value | undefined>>();
  return (args, key) => {
    const name = JSON.stringify(args);
    const load = loads.get(name) ?? batched((keys) => fetch(args, keys));
    loads.set(name, load);
    return load(key);
  };
}

export const keyed = <Row>(rows: readonly Row[], key: (row: Row) => string): Map<string, Row> =>
  new Map(rows.map((row) => [key(row), row]));

/** What belongs to each key, in the order it came. */
export function grouped<Row>(rows: readonly Row[], key: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(key(row));
    if (group) group.push(row);
    else groups.set(key(row), [row]);
  }
  return groups;
}
