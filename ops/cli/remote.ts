import { existsSync, readFileSync } from 'node:fs';
import { env } from 'node:process';
import { AgonError } from '../../services/kernel/index.js';
import { folderLayout, holderOf } from '../../services/runtime/data-folder.js';
import { currentArena, loginFor } from './login.js';

/**
 * Which arena to ask, and as whom: the one that AGON_URL names, the one that runs on this data folder, or the one
 * that was signed in to last. Whoever signed in there acts as themselves; on its own machine the operator needs not.
 */
export async function accessOf(dataDir: string): Promise<{ url: string; token: string }> {
  const local = holderOf(dataDir)?.url;
  const url = env.AGON_URL?.replace(/\/+$/, '') || local || currentArena();
  if (!url) {
    throw new AgonError(
      'ARENA.NOT_RUNNING',
      `No arena runs on ${dataDir}. Start one with "agon start", then try again.`,
    );
  }
  const login = await loginFor(url);
  if (login) return { url, token: login };
  const { token: tokenFile } = folderLayout(dataDir);
  if (url === local && existsSync(tokenFile)) return { url, token: readFileSync(tokenFile, 'utf8').trim() };
  throw new AgonError(
    'AUTH.NOT_SIGNED_IN',
    `You are not signed in to ${url}. Try "agon login <account> --arena ${url}".`,
  );
}

/** Asks an arena, as whoever signed in to it, or as its operator. */
export async function askArena<T>(dataDir: string, query: string, variables: Record<string, unknown>): Promise<T> {
  const answer = (await (await reach(dataDir, 'POST', '/graphql', { query, variables })).json()) as {
    data?: T;
    errors?: { message: string; extensions?: { code?: string } }[];
    code?: string;
    detail?: string;
  };
  const [first] = answer.errors ?? [];
  if (first) throw new AgonError(first.extensions?.code ?? 'GRAPHQL.REFUSED', first.message);
  // What is refused before GraphQL sees it, such as too many requests, comes as problem details.
  if (answer.code) throw new AgonError(answer.code, answer.detail ?? '');
  return answer.data as T;
}

/** The same by REST. */
export async function callArena<T>(dataDir: string, method: string, path: string, body?: object): Promise<T> {
  const response = await reach(dataDir, method, path, body);
  return (response.ok ? await response.json() : await refused(response)) as T;
}

/** A file of the arena, as text. */
export async function readArena(dataDir: string, path: string): Promise<string> {
  const response = await reach(dataDir, 'GET', path);
  return response.ok ? response.text() : refused(response);
}

async function refused(response: Response): Promise<never> {
  const answer = await response.json();
  const { code = 'ARENA.NO_ANSWER', detail = `${response.status}` } = answer as { code?: string; detail?: string };
  throw new AgonError(code, detail);
}

async function reach(dataDir: string, method: string, path: string, body?: object): Promise<Response> {
  const { url, token } = await accessOf(dataDir);
  return fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  }).catch((error: Error) => {
    throw new AgonError('ARENA.NO_ANSWER', `The arena at ${url} does not answer: ${error.message}.`);
  });
}
