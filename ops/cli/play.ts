import { readFileSync } from 'node:fs';
import { env, stderr, stdout } from 'node:process';
import { Arena, ArenaError, type ArenaOptions, type GameName, play } from '../../sdk/typescript/index.js';
import { ownerScopes } from '../../services/accounts/index.js';
import { AgonError } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { type StakeFlags, sayCost, stakeOf } from './estimate.js';
import { localAgent } from './local-agent.js';
import { colour, EXIT, type OutputOptions, print, table } from './output.js';
import { askArena } from './remote.js';
import { untilSignal } from './signals.js';

export interface ArenaFlags extends OutputOptions {
  /** host:port of the arena's door for agents. */
  readonly arena: string;
  readonly key?: string;
  readonly ca?: string;
  /** This client's own certificate, where the arena asks for one. */
  readonly cert?: string;
  readonly certKey?: string;
}

/** A key as it was given; on the arena's own machine its operator can do without. */
export function connectionOf(dataDir: string, { arena, key, ...files }: ArenaFlags) {
  const tls = tlsOf(files);
  const given = key ?? env.AGON_KEY;
  if (given) return { arena, key: given, tls };
  try {
    return { arena, key: readFileSync(folderLayout(dataDir).token, 'utf8').trim(), tls };
  } catch {
    throw new AgonError(
      'AUTH.NO_KEY',
      'There is no API key. Give one with --key or AGON_KEY; "agon apikey create" makes one.',
    );
  }
}

/** Without any file the connection is in clear; without an authority, those of the system vouch for the arena. */
function tlsOf({ ca, cert, certKey }: Pick<ArenaFlags, 'ca' | 'cert' | 'certKey'>): ArenaOptions['tls'] {
  if (ca === undefined && cert === undefined && certKey === undefined) return undefined;
  if ((cert === undefined) !== (certKey === undefined)) {
    throw new AgonError('CONFIG.INVALID', 'A certificate goes with its key: give both --cert and --cert-key.');
  }
  const own = cert === undefined || certKey === undefined ? {} : { cert: read(cert), key: read(certKey) };
  return { ...(ca === undefined ? {} : { ca: read(ca) }), ...own };
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new AgonError('FILE.UNREADABLE', `${file} cannot be read: ${(error as Error).message}.`);
  }
}

/** A refusal of the arena, in the words of this command line. */
export const inOurWords = (error: unknown): unknown =>
  error instanceof ArenaError ? new AgonError(error.code, error.message, error.details) : error;

export async function createKey(
  dataDir: string,
  account: string,
  options: OutputOptions & { name: string; scopes: string; agents?: string },
): Promise<number> {
  const list = (text: string) => text.split(',').map((each) => each.trim());
  const mutation = `mutation Issue($account: String!, $scopes: [String!]!, $name: String!, $agents: [String!]) {
    issueApiKey(accountId: $account, scopes: $scopes, name: $name, agents: $agents) { keyId key } }`;
  const { issueApiKey } = await askArena<{ issueApiKey: { keyId: string; key: string } }>(dataDir, mutation, {
    account,
    scopes: list(options.scopes || ownerScopes.join(',')),
    name: options.name,
    agents: options.agents === undefined ? null : list(options.agents),
  });
  const text = `${issueApiKey.key}\n${colour.dim('It is shown this once. Put it into AGON_KEY.')}`;
  print(options, issueApiKey, stdout.isTTY ? text : issueApiKey.key);
  return EXIT.ok;
}

export async function listKeys(dataDir: string, account: string, options: OutputOptions): Promise<number> {
  interface Key {
    readonly keyId: string;
    readonly name: string;
    readonly scopes: readonly string[];
    readonly agents: readonly string[] | null;
    readonly revoked: boolean;
  }
  const query = 'query Keys($account: String!) { apiKeys(accountId: $account) { keyId name scopes agents revoked } }';
  const { apiKeys } = await askArena<{ apiKeys: Key[] }>(dataDir, query, { account });
  const rows = apiKeys.map(({ keyId, name, scopes, agents, revoked }) => {
    return [keyId, name, scopes.join(' '), agents?.join(' ') ?? 'all', revoked ? 'revoked' : 'in force'];
  });
  print(options, apiKeys, table(['key', 'name', 'scopes', 'agents', ''], rows, []));
  return EXIT.ok;
}

export async function revokeKey(
  dataDir: string,
  account: string,
  keyId: string,
  options: OutputOptions & { reason: string },
): Promise<number> {
  const mutation = `mutation Revoke($account: String!, $keyId: String!, $reason: String!) {
    revokeApiKey(accountId: $account, keyId: $keyId, reason: $reason) { id events } }`;
  const variables = { account, keyId, reason: options.reason };
  const { revokeApiKey } = await askArena<{ revokeApiKey: { events: string[] } }>(dataDir, mutation, variables);
  const already = revokeApiKey.events.length === 0;
  print(options, { keyId, revoked: true, already }, already ? `${keyId} was revoked before.` : `${keyId} is revoked.`);
  return EXIT.ok;
}

export async function joinQueue(
  dataDir: string,
  agent: string,
  options: ArenaFlags & StakeFlags & { game: string; against: string; houseAfterMs: number; waitMs: number },
): Promise<number> {
  const { game, against, houseAfterMs, waitMs, json = false } = options;
  const stake = stakeOf(options);
  await sayCost(
    { dataDir, arena: options.arena },
    agent,
    stake,
    (text) => void (json || stderr.write(`${colour.dim(text)}\n`)),
  );
  const arena = new Arena(connectionOf(dataDir, options));
  try {
    const joined = await arena.joinQueue({ agent, game, ...stake, against, houseAfterMs, waitMs });
    const text = joined ? `${joined.agents.join(' meets ')} in match ${joined.matchId}` : 'Nobody came. Try again.';
    print(options, joined ?? { matchId: null }, text);
    return joined ? EXIT.ok : EXIT.failed;
  } catch (error) {
    throw inOurWords(error);
  } finally {
    arena.close();
  }
}

interface PlayFlags extends ArenaFlags, StakeFlags {
  readonly agent: string;
  readonly game: string;
  readonly against?: string;
  readonly matches?: number;
  readonly concurrency: number;
}

/** Plays with an author's own file until enough matches are over, or a signal comes. */
export async function playAgent(dataDir: string, file: string, flags: PlayFlags): Promise<number> {
  const { agent, against, matches, concurrency, json = false } = flags;
  const { signal } = untilSignal();
  const mine = await localAgent(file);
  const say = (text: string) => void (json || stderr.write(`${colour.dim(text)}\n`));
  const stake = stakeOf(flags);
  const find = against === undefined ? {} : { queue: { against: against === 'anyone' ? '' : against, ...stake } };
  const opponent = against === undefined ? 'waits for matches' : `plays against ${against}`;
  say(`${agent} ${opponent}; Ctrl-C stops.`);
  try {
    if (against !== undefined) await sayCost({ dataDir, arena: flags.arena }, agent, stake, say);
    const results = await play({
      ...connectionOf(dataDir, flags),
      agent,
      concurrency,
      signal,
      games: [flags.game as GameName],
      ...(matches === undefined ? {} : { matches }),
      ...find,
      act: (observation, { matchId }) => mine.act(observation, matchId) as never,
      onStarted: ({ matchId, seat, resumed }) =>
        say(`match ${matchId} ${resumed ? 'goes on' : 'begins'}, seat ${seat}`),
      onResult: ({ matchId, winner, seat, reason }) => say(`match ${matchId}: ${verdict(winner, seat)} by ${reason}`),
      onReconnect: ({ message }) => say(`the arena is away and asked again: ${message}`),
    });
    const tally = { won: 0, drawn: 0, lost: 0 };
    for (const { winner, seat } of results) tally[verdict(winner, seat)] += 1;
    print({ json }, { agent, ...tally, results }, `won ${tally.won}, drawn ${tally.drawn}, lost ${tally.lost}`);
    return EXIT.ok;
  } catch (error) {
    throw inOurWords(error);
  } finally {
    mine.close();
  }
}

const verdict = (winner: number | undefined, seat: number) =>
  winner === undefined ? 'drawn' : winner === seat ? 'won' : 'lost';
