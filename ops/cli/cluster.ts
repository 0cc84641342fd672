import { env } from 'node:process';
import { processNames } from '../run/names.js';
import type { Lent } from './output.js';

/** Kafka's client and the rest take a while to load; only these commands wait for them. */
const clusters = () => import('./cluster-up.js');

/** Commands about the engines that an arena can stand on, besides its own. */
export function addClusterCommands(lent: Lent): void {
  const { program, command, run, config, count } = lent;
  addUpCommands(lent);
  const eventstore = program.command('eventstore').description("Speak EventStoreDB's protocol.").exitOverride();
  command(
    eventstore,
    'serve',
    "Serve the log of a data folder, and nothing else, to EventStoreDB's clients until Ctrl-C.",
  )
    .option('--port <port>', 'the port; 0 takes a free one', count(0, 65_535), 2113)
    .option('--host <host>', 'the address to listen on (default: 127.0.0.1)')
    .option('--cert <file>', 'the certificate, in PEM (default: one of its own making)')
    .option('--key <file>', "the certificate's key, in PEM")
    .option('--insecure', 'no TLS, on this machine alone: whoever reaches it may read')
    .option('--read-only', 'take no appends; works beside a running arena', false)
    .addHelpText('after', '\nExample:\n  agon eventstore serve --data .agon --port 2113')
    .action(
      run(async ({ data, host, json, readOnly, ...flags }) => {
        const { port: eventstorePort, cert: eventstoreCert, key: eventstoreKey, insecure: eventstoreInsecure } = flags;
        const settings = { data, host, eventstorePort, eventstoreCert, eventstoreKey, eventstoreInsecure };
        return (await import('./eventstore.js')).serveLog(config(settings), { json, readOnly });
      }),
    );
  command(
    program,
    'migrate',
    "Copy the log of a data folder into EventStoreDB, and what lies beside it into a cluster's folder; verify both.",
  )
    .requiredOption('--to <address>', 'esdb://..., or "cluster" for the one that AGON_STORE names')
    .option(
      '--into <folder>',
      'the folder that gateways, arena and play share (with "cluster": AGON_DATA, if it is another)',
    )
    .addHelpText(
      'after',
      '\nExample:\n  agon migrate --data .agon --to "esdb://admin:changeit@db:2113?tlsCAFile=ca.crt"',
    )
    .action(
      run(async ({ data, json, to, into = to === 'cluster' ? env.AGON_DATA : undefined }) =>
        (await import('./eventstore.js')).migrateLog(config({ data }), { to, into }, { json }),
      ),
    );
}

function addUpCommands({ program, command, run, config, count }: Lent): void {
  command(
    program,
    'run',
    `Run processes of a cluster, one or several in one, until Ctrl-C: ${processNames.join(', ')}.`,
  )
    .argument('<process...>', 'which')
    .option('--health-port <port>', 'where it says how it is (default: AGON_HEALTH_PORT, or a free port)')
    .option('--views <list>', 'projections: which views to keep (default: AGON_VIEWS, or all)')
    .addHelpText(
      'after',
      '\nSettings come from the environment; see docs/cluster.md.\nExample:\n  agon run wallet payments',
    )
    .action(run(async (names: string[], { json, ...flags }) => (await clusters()).run(names, config(flags), { json })));
  const cluster = program.command('cluster').description('Run a whole cluster on this machine.').exitOverride();
  const inFolder = (name: string, summary: string) =>
    command(cluster, name, summary).option('--folder <folder>', 'what holds all of it', '.agon-cluster');
  inFolder(
    'up',
    "Start Kafka, PostgreSQL, Redis, ClickHouse's engine, a chain (anvil), the log and Agon's processes, in the background.",
  )
    .option('--port <port>', 'of the gateway; 0 takes a free one', count(0, 65_535), 4600)
    .option('--play-port <port>', 'of the door for agents from outside; 0 takes a free one', count(0, 65_535), 4602)
    .option('--brokers <n>', 'of Kafka: 1 or 3', count(1, 3), 1)
    .option('--cells <n>', 'matches that the runner plays at a time', count(1, 256), 2)
    .option('--store-url <address>', 'an EventStoreDB to keep the log in (default: the log in the folder)')
    .option('--from <folder>', 'the data folder of an embedded arena to go on with; moved once, before the first start')
    .option('--no-analytics', 'leave ClickHouse out')
    .option('--no-chain', 'leave anvil out')
    .addHelpText('after', '\nExample:\n  agon cluster up && agon cluster status && agon cluster down')
    .action(run(async (flags) => (await clusters()).up(flags)));
  inFolder('status', 'Say how every process is. Exits 1 if one is not ready.').action(
    run(async (flags) => (await clusters()).status(flags)),
  );
  inFolder('down', 'End the cluster and remove its folder, with all that is in it.')
    .option('--keep-data', 'leave the log and what follows from it, for the next "up"', false)
    .action(run(async (flags) => (await clusters()).down(flags)));
}
