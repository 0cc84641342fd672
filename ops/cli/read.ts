import { writeFileSync } from 'node:fs';
import { env, stdout } from 'node:process';
import type { AgentRow } from '../../projections/agents/table.js';
import { type RankedBy, rank, type Standing } from '../../projections/leaderboards/query.js';
import { type HeadToHeadRow, headToHead, ratings } from '../../projections/leaderboards/table.js';
import { leaderboardsView } from '../../projections/leaderboards/view.js';
import { type MatchRow, matches, turns } from '../../projections/matches/table.js';
import { matchesView } from '../../projections/matches/view.js';
import { gameNamed, gameNames } from '../../sandbox-runner/index.js';
import { type ArenaEvent, arenaEvents } from '../../services/arena/index.js';
import { AgonError, isAgonError, type RecordedEvent, systemClock, upcasterOf } from '../../services/kernel/index.js';
import { holderOf } from '../../services/runtime/data-folder.js';
import { parseConfig } from '../../services/runtime/settings.js';
import { agentNameOf, readAgent } from './author.js';
import { describeMatch, pictureOf, scoreText } from './board.js';
import { logPages, readView, withLog } from './offline.js';
import { colour, EXIT, listOf, type Outcome, type OutputOptions, progress, table, toJson } from './output.js';
import { ask, askAll, RECEIPT, type Receipt } from './remote.js';
import { verifyFolder } from './verify.js';

const upcast = upcasterOf([arenaEvents]);

export function leaderboardText(game: string, standings: readonly Standing[]): string {
  const rows = standings.map((row) => [
    row.rank,
    row.agentId,
    `${row.rating.toFixed(0)}${row.provisional ? '?' : ' '}`,
    `${row.confidence.rating.toFixed(0)} ± ${(2 * row.confidence.deviation).toFixed(0)}${row.confidence.provisional ? '?' : ' '}`,
    ...[row.games, row.wins, row.draws, row.losses],
    row.streak > 0 ? `+${row.streak}` : row.streak,
  ]);
  const head = ['>#', 'agent', '>Elo ', '>Glicko-2 ', '>games', '>won', '>drawn', '>lost', '>streak'];
  return `${colour.bold(game)}\n${table(head, rows)}\n`;
}

function headToHeadText(standings: readonly Standing[], pairs: readonly HeadToHeadRow[]): string {
  const ids = standings.map(({ agentId }) => agentId);
  const cell = (agentId: string, opponentId: string) => {
    const pair = pairs.find((row) => row.agentId === agentId && row.opponentId === opponentId);
    return pair ? `${pair.wins}-${pair.draws}-${pair.losses}` : '';
  };
  const rows = ids.map((id, i) => [i + 1, id, ...ids.map((other) => cell(id, other))]);
  return `${table(['>#', 'won-drawn-lost', ...ids.map((_id, i) => `>${i + 1}`)], rows)}\n`;
}

interface BoardFlags {
  readonly season: string;
  readonly by: RankedBy;
  readonly headToHead?: boolean;
}

export function showLeaderboard(dataDir: string, game: string | undefined, options: BoardFlags): Promise<Outcome> {
  if (game !== undefined) gameNamed(game);
  return withLog(dataDir, async (store) => {
    const { season, by } = options;
    const sink = await readView(store, leaderboardsView);
    const rows = (await sink.rows(ratings)).filter((row) => row.season === season);
    const pairs = (await sink.rows(headToHead)).filter((row) => row.season === season);
    const boards = gameNames
      .map((name) => ({ name, rows: rows.filter((row) => row.game === name) }))
      .filter((board) => (game === undefined ? board.rows.length > 0 : board.name === game))
      .map((board) => ({
        name: board.name,
        standings: rank(board.rows, systemClock(), by),
        pairs: pairs.filter((row) => row.game === board.name),
      }));
    const legend =
      'A "?" marks what is provisional: Elo of fewer than 30 games, Glicko-2 with a deviation of 110 or more.';
    const texts = boards.flatMap((board) => [
      leaderboardText(board.name, board.standings),
      ...(options.headToHead ? [headToHeadText(board.standings, board.pairs)] : []),
    ]);
    const json = boards.map(({ name, standings, pairs: headToHead }) => [
      name,
      options.headToHead ? { standings, headToHead } : standings,
    ]);
    return { json: Object.fromEntries(json), text: `${texts.join('\n')}\n${colour.dim(legend)}` };
  });
}

const byNewest = (all: readonly MatchRow[]) => [...all].sort((a, b) => Number(b.position - a.position));

export function listMatches(dataDir: string, { lines }: { lines: number }): Promise<Outcome> {
  return withLog(dataDir, async (store) => {
    const newest = byNewest(await (await readView(store, matchesView)).rows(matches)).slice(0, lines);
    const rows = newest.map((match) => [
      match.matchId.slice(0, 8),
      match.game,
      match.seats.map((seat) => seat.agentId).join(' - '),
      match.status === 'settled' ? match.seats.map((seat) => scoreText(seat.score)).join(' : ') : match.status,
      match.reason,
      match.turns,
    ]);
    return { json: newest, text: table(['match', 'game', 'agents', 'result', 'by', '>turns'], rows) };
  });
}

export function showMatch(dataDir: string, id: string, { svg }: { svg?: string }): Promise<Outcome> {
  return withLog(dataDir, async (store) => {
    const sink = await readView(store, matchesView);
    const match = oneMatch(await sink.rows(matches), id);
    const its = (await sink.rows(turns)).filter((turn) => turn.matchId === match.matchId);
    const transcript = its.map((turn) => ({ ...turn, action: JSON.parse(turn.action) as unknown }));
    if (svg !== undefined) writeFileSync(svg, pictureOf(match, its));
    // Signed by its runner; not in the view, since only whoever looks at one match wants it.
    const events = (await store.readStream(`match-${match.matchId}`)).map(upcast) as readonly ArenaEvent[];
    const execution = events.find((event) => event.type === 'MatchPlayed')?.data.execution;
    return { json: { ...match, transcript, execution }, text: describeMatch(match, its, execution) };
  });
}

/** A match by its id, by the first letters of it, or the latest one. */
function oneMatch(all: readonly MatchRow[], id: string): MatchRow {
  const isLatest = id === 'latest';
  const found = isLatest ? byNewest(all) : all.filter((match) => match.matchId.startsWith(id.toLowerCase()));
  const [first, second] = found;
  if (!first) throw new AgonError('ARENA.UNKNOWN_MATCH', `There is no match ${id}. See: agon match list.`);
  if (second && !isLatest)
    throw new AgonError('ARENA.AMBIGUOUS_MATCH', `${found.length} matches start with ${id}. Give more of the id.`);
  return first;
}

export async function verifyLog(dataDir: string, options: OutputOptions): Promise<Outcome> {
  const bar = progress('verifying');
  const result = await verifyFolder(dataDir, options.json ? undefined : (done, total) => bar.at(done, total));
  bar.end();
  const { events, streams, fault } = result;
  const good =
    `${colour.green('verified')}: ${events} events in ${streams} streams; every hash and every chain holds.\n` +
    `log hash ${result.logHash}: note it down, and a later check shows that nothing before it was removed or reordered.`;
  const bad = `${colour.red('not verified')}: ${fault?.message} (${events} events before it were checked.)`;
  return { json: result, text: result.verified ? good : bad, good: result.verified };
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
    for await (const page of logPages(store)) {
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

interface Ready {
  readonly status: string;
  readonly parts: readonly { part: string; ready: boolean; detail: string }[];
}

export async function showStatus(dataDir: string): Promise<Outcome> {
  const holder = holderOf(dataDir);
  const url = holder?.url;
  const ready: Ready | undefined = url
    ? await fetch(`${url}/readyz`)
        .then((response) => response.json() as Promise<Ready>)
        .catch(() => undefined)
    : undefined;
  const { storeUrl } = parseConfig({ dataDir }, env);
  const position = await withLog(dataDir, (store) => store.lastPosition()).catch((error: unknown) => {
    if (isAgonError(error, 'DATA.EMPTY')) return 0;
    throw error;
  });
  const parts = ready?.parts ?? [];
  const rows = parts.map((part) => [part.ready ? colour.green('ok') : colour.red('down'), part.part, part.detail]);
  const text = [
    holder ? `running (process ${holder.pid})${url ? ` at ${url}` : ''}` : 'not running',
    storeUrl ? `the log of AGON_STORE is at position ${position}` : `${position} events in ${dataDir}`,
    ...(rows.length ? ['', table(['', 'part', 'detail'], rows)] : []),
  ].join('\n');
  const json = {
    running: holder !== undefined,
    ...(holder ?? {}),
    dataDir,
    ...(storeUrl ? {} : { events: position }),
    position,
    parts,
  };
  return { json, text, good: holder !== undefined && ready?.status === 'ready' };
}

/** All agents of the running arena, or those of one owner. */
export async function listAgents(dataDir: string, { owner }: { owner?: string }): Promise<Outcome> {
  const field = 'agents(first: Int, ownerId: String, after: String)';
  const variables = { ownerId: owner ?? null };
  const found = await askAll<AgentRow>(dataDir, field, '{ agentId runtime version games updatedAt }', variables);
  const rows = found.map(({ agentId, runtime, version, games, updatedAt }) => {
    return [agentId, runtime, version, games.join(' '), updatedAt];
  });
  return { json: found, text: table(['agent', 'runtime', '>version', 'games', 'updated'], rows) };
}

interface SubmitFlags {
  readonly owner: string;
  readonly name?: string;
  readonly games: string;
  readonly runtime?: string;
}

export async function submitAgent(dataDir: string, file: string, flags: SubmitFlags): Promise<Outcome> {
  const { source, runtime } = readAgent(file);
  const given = '(ownerId: String!, name: String!, games: [String!]!, source: String!, runtime: String!)';
  const receipt = await ask<Receipt>(dataDir, `mutation submitAgent${given}`, RECEIPT, {
    ownerId: flags.owner,
    name: flags.name ?? agentNameOf(file),
    games: listOf(flags.games),
    source,
    runtime: flags.runtime ?? runtime,
  });
  const isNew = receipt.events.includes('AgentSubmitted');
  const outcome = isNew ? 'submitted' : receipt.events.length > 0 ? 'new version' : 'unchanged';
  return { json: { ...receipt, outcome }, text: `${colour.green(outcome)}: ${receipt.id}` };
}

export async function registerOwner(
  dataDir: string,
  accountId: string,
  { name = accountId }: { name?: string },
): Promise<Outcome> {
  const field = 'mutation registerOwner(accountId: String!, displayName: String!)';
  const receipt = await ask<Receipt>(dataDir, field, RECEIPT, { accountId, displayName: name });
  return { json: receipt, text: `${colour.green('registered')}: ${receipt.id}` };
}
