import { existsSync, readFileSync } from 'node:fs';
import { AgonError } from '../../services/kernel/index.js';
import { folderLayout, holderOf } from '../embedded/data-folder.js';

/** Asks the arena that runs on this data folder, as its operator. */
export async function askArena<T>(dataDir: string, query: string, variables: Record<string, unknown>): Promise<T> {
  const url = holderOf(dataDir)?.url;
  const { token: tokenFile } = folderLayout(dataDir);
  if (!url || !existsSync(tokenFile)) {
    throw new AgonError(
      'ARENA.NOT_RUNNING',
      `No arena runs on ${dataDir}. Start one with "agon start", then try again.`,
    );
  }
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` },
    body: JSON.stringify({ query, variables }),
  }).catch((error: Error) => {
    throw new AgonError('ARENA.NO_ANSWER', `The arena at ${url} does not answer: ${error.message}.`);
  });
  const { data, errors } = (await response.json()) as {
    data?: T;
    errors?: { message: string; extensions?: { code?: string } }[];
  };
  const [first] = errors ?? [];
  if (first) throw new AgonError(first.extensions?.code ?? 'GRAPHQL.REFUSED', first.message);
  return data as T;
}
