import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';
import { env } from 'node:process';
import {
  type AgentCode,
  archivedAgent,
  Cells,
  codeDigest,
  Egress,
  folderAgent,
  gameNamed,
  houseAgentNamed,
  houseAgentSource,
  houseAgents,
  type MatchAgent,
  type MatchRecord,
  readPolicy,
  replay,
} from '../../sandbox-runner/index.js';
import { type AgentRuntime, AgonError } from '../../services/kernel/index.js';
import { packageRoot } from '../../services/runtime/package.js';
import { egressLines } from './board.js';
import { readGiven } from './files.js';
import { colour, listOf, type Outcome, progress, table } from './output.js';

/** An agent as an author names one: a file, a folder, an archive, or one of the house's by its name. */
type Player = Required<Omit<MatchAgent, 'endpoint' | 'runtime'>> & {
  readonly name: string;
  readonly runtime: AgentRuntime;
};

async function playerOf(reference: string): Promise<Player> {
  const isHouse = houseAgents.some(({ name }) => name === reference);
  const isPath = !isHouse && (/[.\\/]/.test(reference) || kindOf(reference) !== 'missing');
  const { source, runtime } = isPath
    ? readAgent(reference)
    : { source: await houseAgentSource(reference), runtime: houseAgentNamed(reference).runtime };
  const name = isPath ? basename(resolve(reference)) : reference;
  return { name, agentId: name, source, runtime, codeDigest: codeDigest(source) };
}

const RUNTIMES: Readonly<Record<string, AgentRuntime>> = { '.js': 'javascript', '.mjs': 'javascript', '.py': 'python' };
const ARCHIVE = /\.(zip|tar|tgz|tar\.gz)$/i;

/** The agent's name, when its author gives none. */
export const agentNameOf = (path: string): string =>
  basename(resolve(path))
    .replace(ARCHIVE, '')
    .replace(/\.[^.]+$/, '')
    .toLowerCase();

/** An agent's code, and what runs it unless its author says otherwise. */
export function readAgent(path: string): AgentCode {
  if (kindOf(path) === 'folder') return folderAgent(path);
  if (ARCHIVE.test(path)) return archivedAgent(readGiven(path));
  const source = readGiven(path).toString();
  const runtime = RUNTIMES[extname(path)];
  if (runtime) return { source, runtime };
  const known = Object.keys(RUNTIMES).join(', ');
  const message = `${path}: an agent is a file that ends in one of ${known}, a folder, or a .tar, .tar.gz or .zip.`;
  throw new AgonError('FILE.UNKNOWN_LANGUAGE', message);
}

function kindOf(path: string): 'file' | 'folder' | 'missing' {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? 'missing' : found.isDirectory() ? 'folder' : 'file';
}

/** What `--egress` grants: by a policy, agents by the names of their files; by a list of hosts, all that can have any. */
function egressFor(option: string | undefined, players: readonly Player[]): Egress | undefined {
  if (option === undefined) return undefined;
  const processes = players.filter(({ runtime }) => runtime !== 'javascript');
  // With none of these the list stands for everybody, and the refusal says what is wrong with that.
  const named = (processes.length > 0 ? processes : players).map(({ agentId }) => agentId);
  return new Egress(readPolicy(option, named, env));
}

/** Plays in the sandboxes of the arena, with its limits, and records nothing. */
async function withPool<T>(egress: Egress | undefined, use: (pool: Cells) => Promise<T>): Promise<T> {
  const pool = new Cells({}, egress);
  try {
    return await use(pool);
  } finally {
    await pool.close({ kill: true });
  }
}

export type Language = 'javascript' | 'python';

export async function initAgent(
  name: string,
  flags: { game: string; folder: string; language: Language; bundle: boolean },
): Promise<Outcome> {
  const { game, language, bundle } = flags;
  const suffix = language === 'python' ? '.py' : '.js';
  const path = join(flags.folder, bundle ? name : `${name}${suffix}`);
  const next = `agon agent test ${path} --game ${game}`;
  const title = `${language === 'python' ? '#' : '//'} Plays ${game}. Try it with: ${next}\n`;
  const template = (file: string) => readFileSync(join(packageRoot, 'ops/cli/templates', language, file), 'utf8');
  try {
    if (bundle) {
      mkdirSync(path);
      const entry = `main${suffix}`;
      writeFileSync(join(path, entry), title + template(entry));
      for (const file of ['agent.json', `strategy${suffix}`]) writeFileSync(join(path, file), template(file));
    } else {
      const gap = language === 'python' ? '' : '\n';
      writeFileSync(path, title + gap + template(`agent${suffix}`), { flag: 'wx' });
    }
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw exists
      ? new AgonError('FILE.EXISTS', `${path} is there already and was left as it is. Choose another name.`)
      : new AgonError('FILE.UNWRITABLE', `${path} cannot be written: ${(error as Error).message}.`);
  }
  return { json: { file: path, game, language, next }, text: `${colour.green('written')}: ${path}\nnext: ${next}` };
}

interface Tally {
  readonly against: string;
  won: number;
  drew: number;
  lost: number;
  /** Lost by breaking a rule rather than by playing worse. */
  faults: number;
}

interface TestFlags {
  readonly game: string;
  readonly against?: string;
  readonly matches: number;
  readonly seed: string;
  readonly egress?: string;
}

/** Plays an agent against house agents, each seat in turn. Not good if it ever lost by a fault of its own. */
export async function testAgent(file: string, options: TestFlags): Promise<Outcome> {
  const mine = await playerOf(file);
  const names = options.against
    ? listOf(options.against)
    : houseAgents
        // Everywhere, also where there are no process sandboxes; those in Python play when they are named.
        .filter(({ games, runtime }) => games.includes(options.game) && runtime === 'javascript')
        .map(({ name }) => name);
  const opponents = await Promise.all(names.map(playerOf));
  const total = opponents.length * options.matches;
  const bar = progress('playing');
  let played = 0;
  const faults: string[] = [];
  const tallies = await withPool(egressFor(options.egress, [mine]), async (pool) => {
    const checked = await pool.check(mine.source, mine.runtime);
    if (!checked.ok) {
      throw new AgonError('AGENTS.BROKEN_CODE', `${mine.name} cannot play: ${checked.rule}: ${checked.detail}`);
    }
    return Promise.all(
      opponents.map(async (opponent) => {
        const tally: Tally = { against: opponent.name, won: 0, drew: 0, lost: 0, faults: 0 };
        const games = Array.from({ length: options.matches }, async (_, i) => {
          const seat = i % 2;
          const agents = seat === 0 ? [mine, opponent] : [opponent, mine];
          const seed = `${options.seed}/${opponent.name}/${i}`;
          const record = await pool.play({ matchId: seed, game: options.game, seed, agents });
          const fault = count(tally, record, seat);
          if (fault) faults.push(`against ${opponent.name}, seed ${seed}: ${fault}`);
          bar.at(++played, total);
        });
        await Promise.all(games);
        return tally;
      }),
    );
  });
  bar.end();
  const rows = tallies.map(({ against, won, drew, lost, faults: broken }) => {
    return [against, won, drew, lost, broken > 0 ? colour.red(`${broken}`) : '0'];
  });
  const text = [
    table(['against', '>won', '>drew', '>lost', '>by fault'], rows),
    ...faults.slice(0, FAULTS_SHOWN).map((fault) => colour.red(fault)),
  ].join('\n');
  const json = { agent: mine.name, codeDigest: mine.codeDigest, game: options.game, results: tallies, faults };
  return { json, text, good: faults.length === 0 };
}

const FAULTS_SHOWN = 5;

function count(tally: Tally, { outcome }: MatchRecord, seat: number): string | undefined {
  const score = outcome.scores[seat] ?? 0;
  const best = Math.max(...outcome.scores);
  if (score < best) tally.lost += 1;
  else if (outcome.scores.filter((other) => other === best).length > 1) tally.drew += 1;
  else tally.won += 1;
  if (outcome.seatAtFault !== seat) return undefined;
  tally.faults += 1;
  return `${outcome.reason}${outcome.detail ? `: ${outcome.detail}` : ''}`;
}

/** One match between any agents, drawn turn by turn. */
export async function playOnce(
  references: readonly string[],
  flags: { game: string; seed: string; egress?: string },
): Promise<Outcome> {
  const agents = await Promise.all(references.map(playerOf));
  const { game, seed } = flags;
  const egress = egressFor(flags.egress, agents);
  const record = await withPool(egress, (pool) => pool.play({ matchId: seed, game, seed, agents }));
  const names = agents.map(({ name }) => name);
  return { json: { ...record, names }, text: describeRecord(record, names) };
}

function describeRecord(record: MatchRecord, names: readonly string[]): string {
  const game = gameNamed(record.game);
  const { outcome, turns } = record;
  const { states } = replay(record);
  const titles = [
    'start',
    ...turns.map(
      ({ turn, seat, action, fuel }) => `turn ${turn}  ${names[seat]} plays ${JSON.stringify(action)}  (${fuel} fuel)`,
    ),
  ];
  const scores = names.map(
    (name, seat) =>
      `  seat ${seat}  ${name}  ${outcome.winner === seat ? colour.green('won') : (outcome.scores[seat] ?? 0)}`,
  );
  return [
    ...states.flatMap((state, i) => [colour.dim(titles[i] ?? ''), game.render(state), '']),
    `${colour.bold(record.game)}  seed ${record.seed}`,
    ...scores,
    `  ${outcome.reason}${outcome.detail ? `: ${outcome.detail}` : ''}`,
    ...egressLines(record),
  ].join('\n');
}
