import { AgonError } from '../../services/kernel/index.js';
import { accessOf, reach } from './login.js';

/** What the arena did: nothing, if that had been done before. */
export interface Receipt {
  readonly id: string;
  readonly events: readonly string[];
}
export const RECEIPT = '{ id events position repeated }';

/**
 * Asks an arena for one field of its schema, as whoever signed in to it, or as its operator.
 *
 * @example await ask<Receipt>(dataDir, 'mutation endPlan(accountId: String!)', RECEIPT, { accountId })
 */
export async function ask<T>(dataDir: string, field: string, fields: string, variables: object = {}): Promise<T> {
  const [, kind = 'query', name = '', parameters] = /^(mutation)? ?(\w+)(?:\((.*)\))?$/.exec(field) ?? [];
  const declared = parameters ? `(${parameters.replaceAll(/\w+(?=:)/g, '$$$&')})` : '';
  const passed = parameters ? `(${parameters.replaceAll(/(\w+):[^,]*/g, '$1: $$$1')})` : '';
  const query = `${kind} ${declared} { ${name}${passed} ${fields} }`;
  return (await askArena<Record<string, T>>(dataDir, query, variables))[name] as T;
}

/** All nodes of a connection, page by page. */
export async function askAll<Node>(dataDir: string, field: string, node: string, variables: object): Promise<Node[]> {
  interface Page {
    readonly nodes: readonly Node[];
    readonly pageInfo: { readonly endCursor: string | null; readonly hasNextPage: boolean };
  }
  const found: Node[] = [];
  for (let after: string | null = null; ; ) {
    const fields = `{ nodes ${node} pageInfo { endCursor hasNextPage } }`;
    const page: Page = await ask<Page>(dataDir, field, fields, { first: 100, after, ...variables });
    found.push(...page.nodes);
    after = page.pageInfo.endCursor;
    if (!page.pageInfo.hasNextPage) return found;
  }
}

/** The same for several fields, as a whole query. */
export async function askArena<T>(dataDir: string, query: string, variables: object): Promise<T> {
  const answer = (await (await send(dataDir, 'POST', '/graphql', { query, variables })).json()) as {
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
  const response = await send(dataDir, method, path, body);
  return (response.ok ? await response.json() : await refused(response)) as T;
}

/** A file of the arena, as text. */
export async function readArena(dataDir: string, path: string): Promise<string> {
  const response = await send(dataDir, 'GET', path);
  return response.ok ? response.text() : refused(response);
}

/** Throws what the arena said against it. */
export async function refused(response: Response): Promise<never> {
  const answer = await response.json();
  const { code = 'ARENA.NO_ANSWER', detail = `${response.status}` } = answer as { code?: string; detail?: string };
  throw new AgonError(code, detail);
}

async function send(dataDir: string, method: string, path: string, body?: object): Promise<Response> {
  const { url, token } = await accessOf(dataDir);
  return reach(url, method, path, { token, body });
}
