import { type Command, Option } from 'commander';
import { gameNames } from '../../sandbox-runner/index.js';
import type { Lent, OutputOptions } from './output.js';

/** Talking to an arena takes gRPC; the other commands should not have to wait for it. */
const playing = () => import('./play.js');

/** Commands for agents that play from outside, beside the others about agents, and for their keys. */
export function addPlayCommands({
  program,
  agent,
  command,
  run,
  count,
  dataDirOf,
}: Lent & { readonly agent: Command }): void {
  const game = new Option('--game <game>', 'the game to play').choices(gameNames).default('connect-four');
  const arenaDoor = [
    '--arena <host:port>',
    "the arena's door for agents (agon start --play-port)",
    '127.0.0.1:4602',
  ] as const;
  const stake = ['--stake <amount>', 'what each seat stakes, like 5 or 2.50', '0'] as const;
  const currency = ['--currency <code>', 'of the stake', 'PLAY'] as const;
  const stakeCents = () =>
    new Option('--stake-cents <n>', 'the stake in cents, as --stake was before it had a currency').argParser((text) =>
      count(0, Number.MAX_SAFE_INTEGER)(text).toString(),
    );
  const apiKey = ['--key <key>', 'an API key (default: AGON_KEY, or the operator of the data folder)'] as const;
  const authority = ['--ca <file>', 'PEM authority of an arena that speaks TLS'] as const;
  const certificate = ['--cert <file>', 'PEM certificate, for an arena that asks for one (with --cert-key)'] as const;
  const certificateKey = ['--cert-key <file>', 'PEM key of that certificate'] as const;

  command(agent, 'play', 'Play as an agent from outside, with the code of a file of yours, until Ctrl-C.')
    .argument('<file>', 'JavaScript or Python that defines act(observation); it runs here, without a sandbox')
    .requiredOption('--agent <id>', 'for which agent, like ada.bot; it is registered if need be')
    .addOption(game)
    .option('--against <who>', 'find matches: "house", a house agent by its id, or "anyone" (default: wait for some)')
    .option(...stake)
    .option(...currency)
    .addOption(stakeCents())
    .option('--matches <n>', 'end after this many', count(1, 1_000_000))
    .option('--concurrency <n>', 'matches at a time', count(1, 256), 1)
    .option(...arenaDoor)
    .option(...apiKey)
    .option(...authority)
    .option(...certificate)
    .option(...certificateKey)
    .addHelpText('after', '\nExample:\n  agon agent play mine.py --agent ada.bot --against house --matches 3')
    .action(run(async (file: string, flags) => (await playing()).playAgent(dataDirOf(flags), file, flags)));

  const queue = program.command('queue').description('Find opponents.').exitOverride();
  command(queue, 'join', 'Wait for an opponent, and say which match came of it. Exits 1 if nobody came.')
    .argument('<agent>', 'like ada.bot')
    .addOption(game)
    .option(...stake)
    .option(...currency)
    .addOption(stakeCents())
    .option('--against <who>', '"house", or a house agent by its id, at once', '')
    .option(
      '--house-after-ms <n>',
      'meet the house if nobody came after this long; 0 for never',
      count(0, 3_600_000),
      0,
    )
    .option('--wait-ms <n>', 'how long to wait', count(1, 60_000), 60_000)
    .option(...arenaDoor)
    .option(...apiKey)
    .option(...authority)
    .option(...certificate)
    .option(...certificateKey)
    .addHelpText('after', '\nExample:\n  agon queue join ada.bot --game tic-tac-toe --against house')
    .action(run(async (agentId: string, flags) => (await playing()).joinQueue(dataDirOf(flags), agentId, flags)));

  const apikey = program.command('apikey').description('Keys with which agents act for their owners.').exitOverride();
  command(apikey, 'create', 'Make a key, and show it this once.')
    .argument('<account>', 'whose key')
    .option('--name <text>', 'to know it by', '')
    .option(
      '--scopes <list>',
      'of play, submit and read, with commas between (default: all of these); log for staff',
      '',
    )
    .option('--agents <list>', 'only for these agents, with commas between (default: all of the account)')
    .addHelpText('after', '\nExample:\n  export AGON_KEY=$(agon apikey create ada --name laptop)')
    .action(run(async (account: string, flags) => (await playing()).createKey(dataDirOf(flags), account, flags)));
  command(apikey, 'list', 'Show the keys of an account. Their secrets are not known here.')
    .argument('<account>', 'whose keys')
    .action(
      run(async (account: string, flags: OutputOptions) =>
        (await playing()).listKeys(dataDirOf(flags), account, flags),
      ),
    );
  command(apikey, 'revoke', 'End a key at once; streams that it has open are cut.')
    .argument('<account>', 'whose key')
    .argument('<key-id>', 'its id: the 12 digits in the middle, see "agon apikey list"')
    .option('--reason <text>', 'why', 'revoked')
    .action(
      run(async (account: string, keyId: string, flags) =>
        (await playing()).revokeKey(dataDirOf(flags), account, keyId, flags),
      ),
    );
}
