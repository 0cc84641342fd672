import { writeFileSync } from 'node:fs';
import { stdout } from 'node:process';
import { type RankedBy, rank, type Standing } from '../../projections/leaderboards/query.js';
import { type HeadToHeadRow, headToHead, ratings } from '../../projections/leaderboards/table.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { type MatchRow, matches, turns } from '../../projections/matches/table.js';
import { matchesView } from '../../projections/matches/view.js';
import { gameNamed, gameNames } from '../../sandbox-runner/index.js';
import { type ArenaEvent, arenaEvents, type MatchExecution } from '../../services/arena/index.js';
import {
  AgonError,
  type EventStore,
  isAgonError,
  type RecordedEvent,
  systemClock,
  upcasterOf,
} from '../../services/kernel/index.js';
import { holderOf } from '../../services/runtime/data-folder.js';
import { agentNameOf, readAgent } from './author.js';
import { describeMatch, pictureOf, scoreText } from './board.js';
import { readView, withLog } from './offline.js';
import { colour, EXIT, type OutputOptions, print, progress, table, toJson } from './output.js';
import { askArena } from './remote.js';
import { verifyFolder } from './verify.js';

const upcast = upcasterOf([arenaEvents]);

export function leaderboardText(game: string, standings: readonly Standing[]): string {
  const rows = standings.map((row) => [
    `${row.rank}`,
    row.agentId,
    `${row.rating.toFixed(0)}${row.provisional ? '?' : ' '}`,
    `${row.confidence.rating.toFixed(0)} ± ${(2 * row.confidence.deviation).toFixed(0)}${row.confidence.provisional ? '?' : ' '}`,
    `${row.games}`,
    `${row.wins}`,
    `${row.draws}`,
    `${row.losses}`,
    row.streak > 0 ? `+${row.streak}` : `${row.streak}`,
  ]);
  const head = ['#', 'agent', 'Elo ', 'Glicko-2 ', 'games', 'won', 'drawn', 'lost', 'streak'];
  const align = ['right', 'left', 'right', 'right', 'right', 'right', 'right', 'right', 'right'] as const;
  return `${colour.bold(game)}\n${table(head, rows, align)}\n`;
}

function headToHeadText(standings: readonly Standing[], pairs: readonly HeadToHeadRow[]): string {
  const ids = standings.map(({ agentId }) => agentId);
  const cell = (agentId: string, opponentId: string) => {
    const pair = pairs.find((row) => row.agentId === agentId && row.opponentId === opponentId);
    return pair ? `${pair.wins}-${pair.draws}-${pair.losses}` : '';
  };
  const rows = ids.map((id, i) => [`${i + 1}`, id, ...ids.map((other) => cell(id, other))]);
  const head = ['#', 'won-drawn-lost', ...ids.map((_id, i) => `${i + 1}`)];
  return `${table(head, rows, ['right', 'left', ...ids.map(() => 'right' as const)])}\n`;
}

export interface BoardFlags extends OutputOptions {
  readonly season: string;
  readonly by: RankedBy;
  readonly headToHead?: boolean;
}

export function showLeaderboard(dataDir: string, game: string | undefined, options: BoardFlags): Promise<number> {
  if (game !== undefined) gameNamed(game);
  return withLog(dataDir, async (store) => {
    const { season, by } = options;
    const sink = await readView(store, leaderboardsView);
    const rows = (await sink.rows(ratings)).filter((row) => row.season === season);
    const pairs = (await sink.rows(headToHead)).filter((row) => row.season === season);
    const played = (name: string) => rows.some((row) => row.game === name);
    const wanted = gameNames.filter((name) => (game === undefined ? played(name) : name === game));
    const boards = wanted.map((name) => {
      const standings = rank(
        rows.filter((row) => row.game === name),
        systemClock(),
        by,
      );
      return { name, standings, pairs: pairs.filter((row) => row.game === name) };
    });
    const legend =
      'A "?" marks what is provisional: Elo of fewer than 30 games, Glicko-2 with a deviation of 110 or more.';
    const texts = boards.flatMap((board) => [
      leaderboardText(board.name, board.standings),
      ...(options.headToHead ? [headToHeadText(board.standings, board.pairs)] : []),
    ]);
    const json = boards.map(({ name, standings, pairs }) => [
      name,
      options.headToHead ? { standings, headToHead: pairs } : standings,
    ]);
    print(options, Object.fromEntries(json), `${texts.join('\n')}\n${colour.dim(legend)}`);
    return EXIT.ok;
  });
}

export function listMatches(dataDir: string, limit: number, options: OutputOptions): Promise<number> {
  return withLog(dataDir, async (store) => {
    const all = await (await readView(store, matchesView)).rows(matches);
    const newest = [...all].sort((a, b) => Number(b.position - a.position)).slice(0, limit);
    const rows = newest.map((match) => [
      match.matchId.slice(0, 8),
      match.game,
      match.seats.map((seat) => seat.agentId).join(' - '),
      match.status === 'settled' ? match.seats.map((seat) => scoreText(seat.score)).join(' : ') : match.status,
      match.reason,
      `${match.turns}`,
    ]);
    const align = ['left', 'left', 'left', 'left', 'left', 'right'] as const;
    print(options, newest, table(['match', 'game', 'agents', 'result', 'by', 'turns'], rows, align));
    return EXIT.ok;
  });
}

export function showMatch(dataDir: string, id: string, options: OutputOptions & { svg?: string }): Promise<number> {
  return withLog(dataDir, async (store) => {
    const sink = await readView(store, matchesView);
    const match = oneMatch(await sink.rows(matches), id);
    const its = (await sink.rows(turns)).filter((turn) => turn.matchId === match.matchId);
    const transcript = its.map((turn) => ({ ...turn, action: JSON.parse(turn.action) as unknown }));
    if (options.svg !== undefined) writeFileSync(options.svg, pictureOf(match, its));
    const execution = await executionOf(store, match.matchId);
    print(options, { ...match, transcript, execution }, describeMatch(match, its, execution));
    return EXIT.ok;
  });
}

/** How the match was run, as its runner signed it; not in the view, since only whoever looks at one match wants it. */
async function executionOf(store: EventStore, matchId: string): Promise<MatchExecution | undefined> {
  const events = (await store.readStream(`match-${matchId}`)).map(upcast) as readonly ArenaEvent[];
  return events.find((event) => event.type === 'MatchPlayed')?.data.execution;
}

/** A match by its id, by the first letters of it, or the latest one. */
function oneMatch(all: readonly MatchRow[], id: string): MatchRow {
  const found = id === 'latest' ? latest(all) : all.filter((match) => match.matchId.startsWith(id.toLowerCase()));
  const [first, second] = found;
  if (!first) throw new AgonError('ARENA.UNKNOWN_MATCH', `There is no match ${id}. See: agon match list.`);
  if (second)
    throw new AgonError('ARENA.AMBIGUOUS_MATCH', `${found.length} matches start with ${id}. Give more of the id.`);
  return first;
}

const latest = (all: readonly MatchRow[]): readonly MatchRow[] =>
  [...all].sort((a, b) => Number(b.position - a.position)).slice(0, 1);

export async function verifyLog(dataDir: string, options: OutputOptions): Promise<number> {
  const bar = progress('verifying');
  const result = await verifyFolder(dataDir, options.json ? undefined : (done, total) => bar.at(done, total));
  bar.end();
  const { events, streams, fault } = result;
  const good =
    `${colour.green('verified')}: ${events} events in ${streams} streams; every hash and every chain holds.\n` +
    `log hash ${result.logHash}: note it down, and a later check shows that nothing before it was removed or reordered.`;
  const bad = `${colour.red('not verified')}: ${fault?.message} (${events} events before it were checked.)`;
  print(options, result, result.verified ? good : bad);
  return result.verified ? EXIT.ok : EXIT.failed;
}

export function tailLog(
  dataDir: string,
  options: OutputOptions & { lines: number; follow: boolean; stream?: string; type?: string },
): Promise<number> {
  return withLog(dataDir, async (store) => {
    const wanted = (event: RecordedEvent) =>
      (options.stream === undefined || event.stream === options.stream) &&
      (options.type === undefined || event.type === options.type);
    const show = (event: RecordedEvent) => stdout.write(`${options.json ? toJson(event) : eventLine(event)}\n`);
    const last: RecordedEvent[] = [];
    let after = 0;
    for (;;) {
      const page = await store.readAll({ after, limit: 4096 });
      if (page.length === 0) break;
      last.push(...page.filter(wanted));
      if (last.length > options.lines) last.splice(0, last.length - options.lines);
      after = page.at(-1)?.position ?? after;
    }
    for (const event of last) show(event);
    if (!options.follow) return EXIT.ok;
    const subscription = store.subscribe({ after }, async (events) => {
      for (const event of events) if (wanted(event)) show(event);
    });
    await new Promise<void>((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
    await subscription.stop();
    return EXIT.ok;
  });
}

function eventLine(event: RecordedEvent): string {
  const data = JSON.stringify(event.data);
  const short = data.length > 110 ? `${data.slice(0, 109)}…` : data;
  const place = `${`${event.position}`.padStart(7)}  ${colour.dim(event.time)}`;
  return `${place}  ${colour.cyan(event.type.padEnd(15))}  ${event.stream}@${event.revision}  ${colour.dim(short)}`;
}

export async function showStatus(dataDir: string, options: OutputOptions): Promise<number> {
  const holder = holderOf(dataDir);
  const url = holder?.url;
  const ready = url
    ? await fetch(`${url}/readyz`)
        .then((r) => r.json() as Promise<Ready>)
        .catch(() => undefined)
    : undefined;
  const events = await withLog(dataDir, (store) => store.lastPosition()).catch((error: unknown) => {
    if (isAgonError(error, 'DATA.EMPTY')) return 0;
    throw error;
  });
  const result = { running: holder !== undefined, ...(holder ?? {}), dataDir, events, parts: ready?.parts ?? [] };
  const parts = (ready?.parts ?? []).map((part) => [
    part.ready ? colour.green('ok') : colour.red('down'),
    part.part,
    part.detail,
  ]);
  const head = holder ? `running (process ${holder.pid})${url ? ` at ${url}` : ''}` : 'not running';
  const text = [
    head,
    `${events} events in ${dataDir}`,
    ...(parts.length ? ['', table(['', 'part', 'detail'], parts, ['left', 'left', 'left'])] : []),
  ];
  print(options, result, text.join('\n'));
  return holder && ready?.status === 'ready' ? EXIT.ok : EXIT.failed;
}

interface Ready {
  readonly status: string;
  readonly parts: readonly { part: string; ready: boolean; detail: string }[];
}

interface ListedAgent {
  readonly agentId: string;
  readonly runtime: string;
  readonly version: number;
  readonly games: readonly string[];
  readonly updatedAt: string;
}

/** All agents of the running arena, or those of one owner, page by page. */
export async function listAgents(dataDir: string, options: OutputOptions & { owner?: string }): Promise<number> {
  interface Page {
    readonly nodes: readonly ListedAgent[];
    readonly pageInfo: { readonly endCursor: string | null; readonly hasNextPage: boolean };
  }
  const query = `query ($owner: String, $after: String) { agents(first: 100, ownerId: $owner, after: $after) {
    nodes { agentId runtime version games updatedAt } pageInfo { endCursor hasNextPage } } }`;
  const found: ListedAgent[] = [];
  for (let after: string | null = null; ; ) {
    const variables: Record<string, unknown> = { owner: options.owner ?? null, after };
    const { agents }: { agents: Page } = await askArena<{ agents: Page }>(dataDir, query, variables);
    found.push(...agents.nodes);
    after = agents.pageInfo.endCursor;
    if (!agents.pageInfo.hasNextPage) break;
  }
  const rows = found.map(({ agentId, runtime, version, games, updatedAt }) => {
    return [agentId, runtime, `${version}`, games.join(' '), updatedAt];
  });
  const align = ['left', 'left', 'right', 'left', 'left'] as const;
  print(options, found, table(['agent', 'runtime', 'version', 'games', 'updated'], rows, align));
  return EXIT.ok;
}

export async function submitAgent(
  dataDir: string,
  file: string,
  options: OutputOptions & { owner: string; name?: string; games: string; runtime?: string },
): Promise<number> {
  const { source, runtime: usual } = readAgent(file);
  const name = options.name ?? agentNameOf(file);
  const games = options.games.split(',').map((game) => game.trim());
  const mutation = `mutation Submit($ownerId: String!, $name: String!, $games: [String!]!, $source: String!, $runtime: String!) {
    submitAgent(ownerId: $ownerId, name: $name, games: $games, source: $source, runtime: $runtime)
      { id events position repeated }
  }`;
  const runtime = options.runtime ?? usual;
  const variables = { ownerId: options.owner, name, games, source, runtime };
  const { submitAgent: receipt } = await askArena<{ submitAgent: Receipt }>(dataDir, mutation, variables);
  const what = receipt.events.includes('AgentSubmitted')
    ? 'submitted'
    : receipt.events.length > 0
      ? 'new version'
      : 'unchanged';
  print(options, { ...receipt, outcome: what }, `${colour.green(what)}: ${receipt.id}`);
  return EXIT.ok;
}

export async function registerOwner(
  dataDir: string,
  accountId: string,
  options: OutputOptions & { name?: string },
): Promise<number> {
  const register = `mutation Register($accountId: String!, $displayName: String!) {
    registerOwner(accountId: $accountId, displayName: $displayName) { id events position repeated }
  }`;
  const variables = { accountId, displayName: options.name ?? accountId };
  const { registerOwner: receipt } = await askArena<{ registerOwner: Receipt }>(dataDir, register, variables);
  print(options, receipt, `${colour.green('registered')}: ${receipt.id}`);
  return EXIT.ok;
}

interface Receipt {
  readonly id: string;
  readonly events: readonly string[];
  readonly position: number;
  readonly repeated: boolean;
}
