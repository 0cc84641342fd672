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
import { egressLines } from './board.js';
import { colour, EXIT, type OutputOptions, print, progress, table } from './output.js';

/** An agent as an author names one: a file, a folder, an archive, or one of the house's by its name. */
type Player = Required<Omit<MatchAgent, 'door' | 'runtime'>> & {
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
  if (ARCHIVE.test(path)) return archivedAgent(read(path));
  const source = read(path).toString();
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

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new AgonError('FILE.UNREADABLE', `${file} cannot be read: ${(error as Error).message}.`);
  }
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

const templates = {
  javascript: (game: string, file: string) => `// Plays ${game}. Try it with: agon agent test ${file} --game ${game}

/** Called once before the first turn. */
export function init(config) {
  // config: { game, version, seat, seats, turnFuel, bankFuel }
}

/** Called on every turn: look at the observation, return one of its legal actions. */
export function act(observation) {
  const { legal } = observation;
  return legal[Math.floor(Math.random() * legal.length)];
}

/** Called once at the end. */
export function onResult(result) {
  // result: { game, seat, winner, score, reason }
}
`,
  python: (game: string, file: string) => `# Plays ${game}. Try it with: agon agent test ${file} --game ${game}
import random


def init(config):
    """Called once before the first turn. config: game, version, seat, seats, turnMs, bankMs."""


def act(observation):
    """Called on every turn: look at the observation, return one of its legal actions."""
    return random.choice(observation["legal"])


def on_result(result):
    """Called once at the end. result: game, seat, winner, score, reason."""
`,
};

export type Language = keyof typeof templates;
export const languages = Object.keys(templates) as Language[];

/** The same agent as several files: an entry, and a module of its own to put the thinking into. */
const bundleTemplates = {
  javascript: (game: string, folder: string) => ({
    'agent.json': `${JSON.stringify({ runtime: 'javascript', entry: 'main.js' }, null, 2)}\n`,
    'main.js': `// Plays ${game}. Try it with: agon agent test ${folder} --game ${game}
import { choose } from './strategy.js';

/** Called on every turn: look at the observation, return one of its legal actions. */
export function act(observation) {
  return choose(observation.legal);
}
`,
    'strategy.js': `export const choose = (legal) => legal[Math.floor(Math.random() * legal.length)];
`,
  }),
  python: (game: string, folder: string) => ({
    'agent.json': `${JSON.stringify({ runtime: 'python', entry: 'main.py' }, null, 2)}\n`,
    'main.py': `# Plays ${game}. Try it with: agon agent test ${folder} --game ${game}
from strategy import choose


def act(observation):
    """Called on every turn: look at the observation, return one of its legal actions."""
    return choose(observation["legal"])
`,
    'strategy.py': `import random


def choose(legal):
    return random.choice(legal)
`,
  }),
} satisfies Record<Language, (game: string, folder: string) => Record<string, string>>;

export async function initAgent(
  name: string,
  options: OutputOptions & { game: string; folder: string; language: Language; bundle: boolean },
): Promise<number> {
  const { game, language, bundle } = options;
  const suffix = bundle ? '' : language === 'python' ? '.py' : '.js';
  const path = join(options.folder, `${name}${suffix}`);
  try {
    if (bundle) {
      mkdirSync(path);
      for (const [file, text] of Object.entries(bundleTemplates[language](game, path))) {
        writeFileSync(join(path, file), text, { flag: 'wx' });
      }
    } else {
      writeFileSync(path, templates[language](game, path), { flag: 'wx' });
    }
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw exists
      ? new AgonError('FILE.EXISTS', `${path} is there already and was left as it is. Choose another name.`)
      : new AgonError('FILE.UNWRITABLE', `${path} cannot be written: ${(error as Error).message}.`);
  }
  const next = `agon agent test ${path} --game ${game}`;
  print(options, { file: path, game, language, next }, `${colour.green('written')}: ${path}\nnext: ${next}`);
  return EXIT.ok;
}

interface Tally {
  readonly against: string;
  won: number;
  drew: number;
  lost: number;
  /** Lost by breaking a rule rather than by playing worse. */
  faults: number;
}

/** Plays an agent against house agents, each seat in turn. Exits 1 if it ever lost by a fault of its own. */
export async function testAgent(
  file: string,
  options: OutputOptions & { game: string; against?: string; matches: number; seed: string; egress?: string },
): Promise<number> {
  const mine = await playerOf(file);
  const names =
    options.against?.split(',') ??
    houseAgents
      // Everywhere, also where there are no process sandboxes; those in Python play when they are named.
      .filter(({ games, runtime }) => games.includes(options.game) && runtime === 'javascript')
      .map(({ name }) => name);
  const opponents = await Promise.all(names.map((name) => playerOf(name.trim())));
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
  const rows = tallies.map(({ against, won, drew, lost, faults }) => [
    against,
    ...[won, drew, lost].map(String),
    faults > 0 ? colour.red(`${faults}`) : '0',
  ]);
  const text = [
    table(['against', 'won', 'drew', 'lost', 'by fault'], rows, ['left', 'right', 'right', 'right', 'right']),
    ...faults.slice(0, FAULTS_SHOWN).map((fault) => colour.red(fault)),
  ];
  print(
    options,
    { agent: mine.name, codeDigest: mine.codeDigest, game: options.game, results: tallies, faults },
    text.join('\n'),
  );
  return faults.length > 0 ? EXIT.failed : EXIT.ok;
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
  options: OutputOptions & { game: string; seed: string; egress?: string },
): Promise<number> {
  const agents = await Promise.all(references.map(playerOf));
  const { game, seed } = options;
  const egress = egressFor(options.egress, agents);
  const record = await withPool(egress, (pool) => pool.play({ matchId: seed, game, seed, agents }));
  const names = agents.map(({ name }) => name);
  print(options, { ...record, names }, describeRecord(record, names));
  return EXIT.ok;
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
