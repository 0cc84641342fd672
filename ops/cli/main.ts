import { availableParallelism } from 'node:os';
import { argv, exit, stderr, stdout } from 'node:process';
import { CommanderError, Option } from 'commander';
import { gameNamed, gameNames } from '../../sandbox-runner/games/index.js';
import { agentRuntime, isAgonError } from '../../services/kernel/index.js';
import { version } from '../../services/runtime/package.js';
import type { Language } from './author.js';
import { addBusCommands } from './bus.js';
import { addClusterCommands } from './cluster.js';
import { type AddCommand, AgonCommand, count, lazy } from './command.js';
import { addMoneyCommands } from './money.js';
import { EXIT, listOf, type OutputOptions, printError } from './output.js';
import { addPlayCommands } from './play.js';
import { addWebhookCommands } from './webhooks.js';

const gameList = (text: string) => listOf(text).map((name) => gameNamed(name).name);

const program = new AgonCommand('agon')
  .description('An event-sourced arena for AI agents: matches in sandboxes, one log, verdicts that anyone can replay.')
  .version(version)
  .showHelpAfterError('Run with --help for the flags and examples.')
  .exitOverride();
const command: AddCommand = (name, summary) => program.add(name, summary);

const serving = () => import('./serve.js');
const asking = () => import('./analytics.js');
const reading = () => import('./read.js');
const authoring = () => import('./author.js');

command('start', 'Start the arena and serve until Ctrl-C. The first start lets the house agents play a ladder.')
  .option('--port <port>', 'the port of the gateway; 0 takes a free one (default: 4600)')
  .option('--host <host>', 'the address to listen on (default: 127.0.0.1)')
  .option('--cells <n>', 'sandbox cells that play side by side (default: one a core)')
  .option('--rake-bps <n>', 'the house share of a decided pot in 1/100 percent, 500 to 1500 (default: 1000)')
  .option('--grpc-port <port>', 'open the endpoint for runners on this port; 0 takes a free one (default: closed)')
  .option(
    '--store-url <address>',
    "keep the log in EventStoreDB, at esdb://... (default: AGON_STORE, or the folder's log)",
  )
  .option('--eventstore-port <port>', "open the log to EventStoreDB's clients on this port (default: closed)")
  .option('--eventstore-cert <file>', 'the certificate of that endpoint, in PEM (default: one of its own making)')
  .option('--eventstore-key <file>', "the certificate's key, in PEM")
  .option('--eventstore-insecure', 'no TLS at that endpoint, on this machine alone: whoever reaches it may read')
  .option(
    '--play-port <port>',
    'open the endpoint for agents that play from outside; 0 takes a free one (default: closed)',
  )
  .option('--play-cert <file>', 'PEM certificate: the endpoint for agents speaks TLS (with --play-key)')
  .option('--play-key <file>', 'PEM key of the certificate')
  .option('--play-client-ca <file>', 'PEM authority: agents need a certificate of it (mutual TLS)')
  .option('--play-reflection', 'let tools like grpcurl ask that endpoint what it serves')
  .option('--play-turn-ms <n>', 'what a turn of an agent outside may take without cost (default: 2000)')
  .option('--play-bank-ms <n>', 'what it has for a whole match beyond that (default: 60000)')
  .option('--play-join-ms <n>', 'how late it may come to a match (default: 30000)')
  .option('--no-runner', 'run no matches inside; leave them to "agon runner"')
  .option('--lease-ms <n>', "how long a match is a runner's without a heartbeat (default: 30000)")
  .option('--egress <policy.json>', 'which agents the runner inside lets reach what on the network (default: none)')
  .option('--analytics-port <port>', 'serve ClickHouse to readers on this port of loopback; 0 takes a free one')
  .option('--analytics-days <n>', 'after how many days analytics forget an event; 0 never (default: 0)')
  .option('--analytics', 'keep events in ClickHouse as well (the default, or AGON_ANALYTICS)')
  .option('--no-analytics', 'keep no events in ClickHouse, and start without its engine')
  .option('--no-ladder', 'start empty, without house agents')
  .option('--deposit-clearing-s <n>', 'seconds after which a deposit can be withdrawn (default: 604800, a week)')
  .option(
    '--stripe-sandbox [port]',
    'take payments by a stand-in for Stripe, on this machine alone (default: 4610)',
    count(0, 65_535),
  )
  .runs(lazy(serving, 'start'));

command('runner', 'Play matches of an arena, in a process of its own, until Ctrl-C. Run as many as you like.')
  .requiredOption('--arena <host:port>', "the arena's endpoint for runners (agon start --grpc-port)")
  .option('--concurrency <n>', 'matches at a time (default: one a core)', count(1, 256), availableParallelism())
  .option('--host <host>', 'the address on which it serves dry runs, logs and health', '127.0.0.1')
  .option('--port <port>', 'the port for them; 0 takes a free one', count(0, 65_535), 0)
  .option('--key-dir <folder>', 'where the key that signs its reports is kept', '.agon-runner')
  .option('--token-file <file>', "the arena's runner token (default: AGON_TOKEN, or runner.token in the data folder)")
  .option(
    '--grace-ms <n>',
    'how long matches may go on after Ctrl-C before they are handed back',
    count(0, 86_400_000),
    30_000,
  )
  .option('--egress <policy.json>', 'which agents may reach what on the network (default: none; docs/egress.md)')
  .example('agon runner --arena 127.0.0.1:4601 --concurrency 4')
  .does(lazy(() => import('./runner.js'), 'runRunner'));

addClusterCommands(program);

command('demo', 'Play a ladder of the house agents in a folder of its own, check everything, and stop.')
  .option('--matches <n>', 'how many matches', count(1, 100_000), 100)
  .option('--seed <text>', 'the same seed gives the same matches', 'demo')
  .option('--games <list>', `of ${gameNames.join(', ')}, with commas between (default: the two quick ones)`, gameList)
  .option('--payments', 'deposits, refunds and a chargeback on top, by the stand-in for Stripe', false)
  .addHelpText(
    'after',
    '\nExamples:\n  agon demo --matches 200 --json\n  agon demo --matches 24 --games chess,leduc-holdem',
  )
  .runs(lazy(serving, 'demo'));

command('status', 'Say whether an arena runs on the data folder, and how its parts are. Exits 1 if not ready.').does(
  lazy(reading, 'showStatus'),
);

command('leaderboard', 'Show the ratings, recomputed from the log.')
  .argument('[game]', `one of ${gameNames.join(', ')}; all when left out`)
  .option('--season <season>', 'a quarter as 2026-Q1, or all of them', 'all')
  .addOption(new Option('--by <rating>', 'what to rank by').choices(['elo', 'glicko']).default('elo'))
  .option('--head-to-head', 'show who beat whom, too')
  .does(lazy(reading, 'showLeaderboard'));

const projections = program.group('projections', 'Look after the read models.');
const aView = 'its name, see "agon projections list"';
const readModels = () => import('./projections.js');
projections('list', 'Show how far each view is, what it has put aside, and what is being built.').does(
  lazy(readModels, 'listProjections'),
);
projections(
  'rebuild',
  'Build a view anew from the log beside the one that serves, then swap them. Goes on with a build that was interrupted.',
)
  .argument('<view>', aView)
  .does(lazy(readModels, 'rebuildProjection'));
projections('dead-letters', 'Show the events that views could not take in, with the reason.')
  .argument('[view]', 'only of this view')
  .does(lazy(readModels, 'showDeadLetters'));
projections(
  'replay',
  "Take a view's dead letters in again, each at its place in the log. Exits 1 if some still cannot be taken in.",
)
  .argument('<view>', aView)
  .does(lazy(readModels, 'replayProjection'));

const log = program.group('log', 'Read and check the event log.');
log('tail', 'Show the last events.')
  .option('-n, --lines <n>', 'how many', count(0, 1_000_000), 20)
  .option('-f, --follow', 'go on as new events come', false)
  .option('--stream <name>', 'only of this stream, e.g. wallet-gold')
  .option('--type <type>', 'only of this type, e.g. MatchSettled')
  .does(lazy(reading, 'tailLog'));
log(
  'verify',
  'Re-check every hash and every chain, and print the hash of the whole log. Exits 1 and names the event if one does not hold.',
).does(lazy(reading, 'verifyLog'));

const analytics = program.group('analytics', 'Ask ClickHouse about everything that happened.');
analytics('query', 'Answer a question in SQL, from a running arena or a stopped one. Nothing can be changed by it.')
  .argument('<sql>', 'for example: SELECT type, count() FROM events FINAL GROUP BY type')
  .option('--csv', 'comma-separated values, with the names of the columns')
  .option('--limit <n>', 'rows at most', count(1, 1_000_000), 10_000)
  .option('--timeout <seconds>', 'how long it may take', count(1, 3600), 30)
  .addHelpText(
    'after',
    '\nThe tables are in docs/analytics.md. Example:\n  agon analytics query "SELECT game, count() FROM matches_ended FINAL GROUP BY game"',
  )
  .does(lazy(asking, 'query'));
analytics('rebuild', 'Build the analytics anew from the log, beside what serves, and then put them in its place.').does(
  lazy(asking, 'rebuild'),
);

const agent = program.group('agent', 'Work with agents.');
const game = new Option('--game <game>', 'the game to play').choices(gameNames).default('connect-four');
const egress = new Option(
  '--egress <policy>',
  'let agents reach these hosts: a policy file, or hosts with commas between (default: none)',
);
const languages: readonly Language[] = ['javascript', 'python'];
agent('init', 'Write a first agent to start from.')
  .argument('<name>', "the agent's name, and its file's or folder's")
  .addOption(game)
  .addOption(new Option('--language <language>', 'what to write it in').choices(languages).default('javascript'))
  .option('--folder <folder>', 'where to write it', '.')
  .option('--bundle', 'write a folder of several files', false)
  .runs(lazy(authoring, 'initAgent'));
agent('test', 'Play an agent against house agents, in the sandboxes of the arena. Exits 1 if it breaks a rule.')
  .argument('<file>', 'the agent: a file, a folder, or a .tar, .tar.gz or .zip')
  .addOption(game)
  .option('--against <list>', 'house agents or files, with commas between (default: all house agents of the game)')
  .option('--matches <n>', 'how many against each', count(1, 10_000), 10)
  .option('--seed <text>', 'the same seed gives the same matches', 'test')
  .addOption(egress)
  .example('agon agent test mine.js --game connect-four --against minimax --matches 50')
  .runs(lazy(authoring, 'testAgent'));
agent('submit', 'Submit an agent to the running arena, or a new version of it.')
  .argument('<file>', 'JavaScript or Python that defines act(observation), or a folder or archive of it')
  .requiredOption('--owner <account>', 'whose agent it is')
  .option('--name <name>', "the agent's name (default: the file's)")
  .option('--games <list>', 'games it plays, with commas between', gameNames.join(','))
  .addOption(
    new Option('--runtime <runtime>', "what runs it (default: by the file's ending)").choices(agentRuntime.options),
  )
  .example('agon agent submit mine.js --owner gold --games connect-four')
  .does(lazy(reading, 'submitAgent'));
agent('list', 'Show the agents of the running arena.')
  .option('--owner <account>', 'only those of this account')
  .does(lazy(reading, 'listAgents'));

addPlayCommands(program, agent);

const owner = program.group('owner', 'Work with owners of agents.');
owner('register', 'Register an owner in the running arena.')
  .argument('<account>', 'a short name: a-z, 0-9 and -')
  .option('--name <text>', 'the name to show (default: the account)')
  .does(lazy(reading, 'registerOwner'));

const signing = () => import('./login.js');
const arenaUrl = [
  '--arena <address>',
  'the arena, like https://agon.example (default: AGON_URL, or the one that runs here)',
] as const;
command('login', 'Sign in to an arena. From then on, commands that ask it act as you.')
  .argument('[account]', 'your account; --oidc knows it by itself')
  .option(...arenaUrl)
  .option('--totp <code>', 'the six digits of your authenticator')
  .option('--register', 'make the account first', false)
  .option('--oidc', "sign in with the arena's identity provider, in a browser", false)
  .option('--port <port>', 'where the browser comes back to, with --oidc; 0 takes a free one', count(0, 65_535), 0)
  .addHelpText(
    'after',
    '\nThe password is asked for, piped in, or taken from AGON_PASSWORD.\n\nExample:\n  agon login ada --register',
  )
  .does(lazy(signing, 'logIn'));
command('logout', 'Sign out: the session ends at the arena, too.')
  .option(...arenaUrl)
  .does(lazy(signing, 'logOut'));
command('whoami', 'Say as whom commands ask the arena.').does(lazy(signing, 'whoAmI'));

const match = program.group('match', 'Play matches and look at them.');
match('list', 'Show the newest matches.')
  .option('-n, --lines <n>', 'how many', count(1, 100_000), 20)
  .does(lazy(reading, 'listMatches'));
match('show', 'Draw a match turn by turn.')
  .argument('<id>', 'the id, the first letters of it, or "latest"')
  .option('--svg <file>', 'write the last position as a picture, too')
  .does(lazy(reading, 'showMatch'));

match('watch', 'Follow a match of the running arena as it is played.')
  .argument('<id>', 'the id, the first letters of it, or "latest"')
  .example('agon match watch latest --json    # a line of JSON for each turn, and one for the end')
  .does(lazy(() => import('./watch.js'), 'watchMatch'));

match('verify', 'Check a match by its replay file alone. Exits 1 and says what does not hold.')
  .argument('<file>', 'as GET /v1/matches/<id>/replay gives it')
  .runs(lazy(() => import('./replay-file.js'), 'verifyReplay'));

match('play', 'Play one match between any agents, here and now, and draw it. Nothing is recorded.')
  .argument('<agents...>', 'by seat: files, folders, archives, or house agents by name')
  .addOption(game)
  .option('--seed <text>', 'the same seed gives the same match', 'play')
  .addOption(egress)
  .example('agon match play mine.js minimax --game tic-tac-toe')
  .runs(lazy(authoring, 'playOnce'));

addMoneyCommands(program);
addWebhookCommands(program);
addBusCommands(program);

/** Usage errors exit 2, everything refused or failed exits 1; nobody ever sees a stack trace. */
function codeFor(error: unknown, options: OutputOptions): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  printError(options, error);
  const usage = ['CONFIG.INVALID', 'CONFIG.UNKNOWN', 'SANDBOX.UNKNOWN_GAME', 'PROJECTION.UNKNOWN'].some((code) =>
    isAgonError(error, code),
  );
  return usage ? EXIT.usage : EXIT.failed;
}

// Whoever reads us may have seen enough, as head does.
stdout.on('error', () => exit(EXIT.ok));

try {
  await program.parseAsync(argv);
} catch (error) {
  process.exitCode = codeFor(error, { json: argv.includes('--json') });
}
// A pipe takes what it can, when it can: ending before it has taken everything would cut the output short.
for (const stream of [stdout, stderr]) await new Promise<void>((resolve) => stream.write('', () => resolve()));
exit();
