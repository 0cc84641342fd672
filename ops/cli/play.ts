import { readFileSync } from 'node:fs';
import { env, stderr, stdout } from 'node:process';
import { Option } from 'commander';
import { gameNames } from '../../sandbox-runner/index.js';
import type { ArenaOptions, GameName } from '../../sdk/typescript/index.js';
import { AgonError } from '../../services/kernel/index.js';
import { folderLayout } from '../../services/runtime/data-folder.js';
import { type AddCommand, type AgonCommand, count } from './command.js';
import { type StakeFlags, sayCost, stakeOf } from './estimate.js';
import { readGiven } from './files.js';
import { localAgent } from './local-agent.js';
import { colour, type Flags, listOf, type Outcome, table } from './output.js';
import { ask, type Receipt } from './remote.js';
import { untilSignal } from './signals.js';

/** Talking to an arena takes gRPC; the other commands should not have to wait for it. */
const sdk = () => import('../../sdk/typescript/index.js');

/** Commands for agents that play from outside, beside the others about agents, and for their keys. */
export function addPlayCommands(program: AgonCommand, agent: AddCommand): void {
  /** What finding opponents and playing against them have in common. */
  const playing = (add: AddCommand, name: string, summary: string) =>
    add(name, summary)
      .addOption(new Option('--game <game>', 'the game to play').choices(gameNames).default('connect-four'))
      .option('--stake <amount>', 'what each seat stakes, like 5 or 2.50', '0')
      .option('--currency <code>', 'of the stake', 'PLAY')
      .addOption(
        new Option('--stake-cents <n>', 'the stake in cents, as --stake was before it had a currency').argParser(
          (text) => count(0, Number.MAX_SAFE_INTEGER)(text).toString(),
        ),
      )
      .option('--arena <host:port>', "the arena's endpoint for agents (agon start --play-port)", '127.0.0.1:4602')
      .option('--key <key>', 'an API key (default: AGON_KEY, or the operator of the data folder)')
      .option('--ca <file>', 'PEM authority of an arena that speaks TLS')
      .option('--cert <file>', 'PEM certificate, for an arena that asks for one (with --cert-key)')
      .option('--cert-key <file>', 'PEM key of that certificate');

  playing(agent, 'play', 'Play as an agent from outside, with the code of a file of yours, until Ctrl-C.')
    .argument('<file>', 'JavaScript or Python that defines act(observation); it runs here, without a sandbox')
    .requiredOption('--agent <id>', 'for which agent, like ada.bot; it is registered if need be')
    .option('--against <who>', 'find matches: "house", a house agent by its id, or "anyone" (default: wait for some)')
    .option('--matches <n>', 'end after this many', count(1, 1_000_000))
    .option('--concurrency <n>', 'matches at a time', count(1, 256), 1)
    .example('agon agent play mine.py --agent ada.bot --against house --matches 3')
    .does(playAgent);

  const queue = program.group('queue', 'Find opponents.');
  playing(queue, 'join', 'Wait for an opponent, and say which match came of it. Exits 1 if nobody came.')
    .argument('<agent>', 'like ada.bot')
    .option('--against <who>', '"house", or a house agent by its id, at once', '')
    .option(
      '--house-after-ms <n>',
      'meet the house if nobody came after this long; 0 for never',
      count(0, 3_600_000),
      0,
    )
    .option('--wait-ms <n>', 'how long to wait', count(1, 60_000), 60_000)
    .example('agon queue join ada.bot --game tic-tac-toe --against house')
    .does(joinQueue);
  addKeyCommands(program);
}

function addKeyCommands(program: AgonCommand): void {
  const apikey = program.group('apikey', 'Keys with which agents act for their owners.');
  const scopes = 'of play, submit and read, with commas between (default: all of these); log for staff';
  apikey('create', 'Make a key, and show it this once.')
    .argument('<account>', 'whose key')
    .option('--name <text>', 'to know it by', '')
    .option('--scopes <list>', scopes, '')
    .option('--agents <list>', 'only for these agents, with commas between (default: all of the account)')
    .example('export AGON_KEY=$(agon apikey create ada --name laptop)')
    .does(async (dataDir, accountId: string, flags: Flags & { name: string; scopes: string; agents?: string }) => {
      const { ownerScopes } = await import('../../services/accounts/index.js');
      const field = 'mutation issueApiKey(accountId: String!, scopes: [String!]!, name: String!, agents: [String!])';
      const issued = await ask<{ key: string }>(dataDir, field, '{ keyId key }', {
        accountId,
        scopes: flags.scopes ? listOf(flags.scopes) : ownerScopes,
        name: flags.name,
        agents: flags.agents === undefined ? null : listOf(flags.agents),
      });
      const text = `${issued.key}\n${colour.dim('It is shown this once. Put it into AGON_KEY.')}`;
      return { json: issued, text: stdout.isTTY ? text : issued.key };
    });
  apikey('list', 'Show the keys of an account. Their secrets are not known here.')
    .argument('<account>', 'whose keys')
    .does(async (dataDir, accountId: string) => {
      const fields = '{ keyId name scopes agents revoked }';
      const keys = await ask<Key[]>(dataDir, 'apiKeys(accountId: String!)', fields, { accountId });
      const rows = keys.map(({ keyId, name, scopes, agents, revoked }) => {
        return [keyId, name, scopes.join(' '), agents?.join(' ') ?? 'all', revoked ? 'revoked' : 'in force'];
      });
      return { json: keys, text: table(['key', 'name', 'scopes', 'agents', ''], rows) };
    });
  apikey('revoke', 'End a key at once; streams that it has open are cut.')
    .argument('<account>', 'whose key')
    .argument('<key-id>', 'its id: the 12 digits in the middle, see "agon apikey list"')
    .option('--reason <text>', 'why', 'revoked')
    .does(async (dataDir, accountId: string, keyId: string, flags: Flags & { reason: string }) => {
      const field = 'mutation revokeApiKey(accountId: String!, keyId: String!, reason: String!)';
      const variables = { accountId, keyId, reason: flags.reason };
      const { events } = await ask<Receipt>(dataDir, field, '{ id events }', variables);
      const already = events.length === 0;
      const text = already ? `${keyId} was revoked before.` : `${keyId} is revoked.`;
      return { json: { keyId, revoked: true, already }, text };
    });
}

interface Key {
  readonly keyId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly agents: readonly string[] | null;
  readonly revoked: boolean;
}

interface ArenaFlags extends Flags {
  /** host:port of the arena's endpoint for agents. */
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
  const own = cert === undefined || certKey === undefined ? {} : { cert: readGiven(cert), key: readGiven(certKey) };
  return { ...(ca === undefined ? {} : { ca: readGiven(ca) }), ...own };
}

/** A refusal of the arena, in the words of this command line. */
async function inOurWords(error: unknown): Promise<unknown> {
  const { ArenaError } = await sdk();
  return error instanceof ArenaError ? new AgonError(error.code, error.message, error.details) : error;
}

const quietly =
  ({ json }: Flags) =>
  (text: string) =>
    void (json || stderr.write(`${colour.dim(text)}\n`));

interface QueueFlags extends ArenaFlags, StakeFlags {
  readonly game: string;
  readonly against: string;
  readonly houseAfterMs: number;
  readonly waitMs: number;
}

async function joinQueue(dataDir: string, agent: string, flags: QueueFlags): Promise<Outcome> {
  const { game, against, houseAfterMs, waitMs } = flags;
  const stake = stakeOf(flags);
  await sayCost({ dataDir, arena: flags.arena }, agent, stake, quietly(flags));
  const { Arena } = await sdk();
  const arena = new Arena(connectionOf(dataDir, flags));
  try {
    const joined = await arena.joinQueue({ agent, game, ...stake, against, houseAfterMs, waitMs });
    const text = joined ? `${joined.agents.join(' meets ')} in match ${joined.matchId}` : 'Nobody came. Try again.';
    return { json: joined ?? { matchId: null }, text, good: joined !== undefined };
  } catch (error) {
    throw await inOurWords(error);
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
async function playAgent(dataDir: string, file: string, flags: PlayFlags): Promise<Outcome> {
  const { agent, against, matches, concurrency } = flags;
  const { signal } = untilSignal();
  const mine = await localAgent(file);
  const say = quietly(flags);
  const stake = stakeOf(flags);
  const find = against === undefined ? {} : { queue: { against: against === 'anyone' ? '' : against, ...stake } };
  const opponent = against === undefined ? 'waits for matches' : `plays against ${against}`;
  say(`${agent} ${opponent}; Ctrl-C stops.`);
  try {
    if (against !== undefined) await sayCost({ dataDir, arena: flags.arena }, agent, stake, say);
    const { play } = await sdk();
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
    const text = `won ${tally.won}, drawn ${tally.drawn}, lost ${tally.lost}`;
    return { json: { agent, ...tally, results }, text };
  } catch (error) {
    throw await inOurWords(error);
  } finally {
    mine.close();
  }
}

const verdict = (winner: number | undefined, seat: number) =>
  winner === undefined ? 'drawn' : winner === seat ? 'won' : 'lost';
