import type { Lent } from './output.js';

/** Commands about the engines that an arena can stand on, besides its own. */
export function addClusterCommands({ program, command, run, config, count }: Lent): void {
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
    'Copy the log of a data folder into EventStoreDB, verify both, and leave the folder for reading.',
  )
    .requiredOption('--to <address>', 'esdb://..., or "cluster" for the one that AGON_STORE names')
    .addHelpText(
      'after',
      '\nExample:\n  agon migrate --data .agon --to "esdb://admin:changeit@db:2113?tlsCAFile=ca.crt"',
    )
    .action(
      run(async ({ data, json, to }) => (await import('./eventstore.js')).migrateLog(config({ data }), to, { json })),
    );
}
