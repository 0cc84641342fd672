import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { env } from 'node:process';
import {
  type AgentRuntime,
  Cells,
  codeDigest,
  Egress,
  gameNamed,
  houseAgentSource,
  houseAgents,
  type MatchAgent,
  type MatchRecord,
  readPolicy,
  replay,
} from '../../sandbox-runner/index.js';
import { AgonError } from '../../services/kernel/index.js';
import { egressLines } from './board.js';
import { colour, EXIT, type OutputOptions, print, progress, table } from './output.js';

/** An agent as an author names one: a file, or one of the house's by its name. */
type Player = Required<Omit<MatchAgent, 'door'>> & { readonly name: string };

async function playerOf(reference: string): Promise<Player> {
  const isFile = extname(reference) !== '' || existsSync(reference);
  const source = isFile ? readSource(reference) : await houseAgentSource(reference);
  const runtime = isFile ? runtimeOf(reference) : 'javascript';
  const name = isFile ? basename(reference) : reference;
  return { name, agentId: name, source, runtime, codeDigest: codeDigest(source) };
}

const RUNTIMES: Readonly<Record<string, AgentRuntime>> = { '.js': 'javascript', '.mjs': 'javascript', '.py': 'python' };

/** What runs a file, unless its author says otherwise. */
export function runtimeOf(file: string): AgentRuntime {
  const runtime = RUNTIMES[extname(file)];
  if (runtime) return runtime;
  const known = Object.keys(RUNTIMES).join(', ');
  throw new AgonError('FILE.UNKNOWN_LANGUAGE', `${file}: an agent is a file that ends in one of ${known}.`);
}

export function readSource(file: string): string {
  try {
    return readFileSync(file, 'utf8');
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

export async function initAgent(
  name: string,
  options: OutputOptions & { game: string; folder: string; language: Language },
): Promise<number> {
  const { game, language } = options;
  const file = join(options.folder, `${name}.${language === 'python' ? 'py' : 'js'}`);
  try {
    writeFileSync(file, templates[language](game, file), { flag: 'wx' });
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw exists
      ? new AgonError('FILE.EXISTS', `${file} is there already and was left as it is. Choose another name.`)
      : new AgonError('FILE.UNWRITABLE', `${file} cannot be written: ${(error as Error).message}.`);
  }
  const next = `agon agent test ${file} --game ${game}`;
  print(options, { file, game, language, next }, `${colour.green('written')}: ${file}\nnext: ${next}`);
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
    houseAgents.filter(({ games }) => games.includes(options.game)).map(({ name }) => name);
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
