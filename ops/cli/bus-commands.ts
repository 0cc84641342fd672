import type { Lent, OutputOptions } from './output.js';

export interface BusFlags extends OutputOptions {
  readonly kafka?: string;
  readonly prefix: string;
}

export interface LetterFlags extends BusFlags {
  readonly group?: string;
  readonly event?: string;
  readonly all?: boolean;
}

/** Kafka's client takes a while to load; only these commands wait for it. */
const bus = () => import('./bus.js');

/** `agon bus`: what carries events between processes. */
export function addBusCommands({ program, command, run, dataDirOf }: Lent): void {
  const group = program.command('bus').description('Carry events to other processes by Kafka.').exitOverride();
  const onKafka = (name: string, summary: string) =>
    command(group, name, summary)
      .option('--kafka <host:port,...>', 'brokers of Kafka (default: KAFKA_BROKERS)')
      .option('--prefix <text>', 'what the names of the topics begin with', 'agon');
  onKafka(
    'relay',
    'Publish the log to Kafka until Ctrl-C, each event once and in order. Run two, and one stands by for the other.',
  )
    .option('--redis <url>', 'where relays agree on who publishes (default: REDIS_URL, or only this one)')
    .option('--lease-ms <n>', 'how long a relay that has died keeps others waiting', '6000')
    .addHelpText('after', '\nExample:\n  agon bus relay --kafka 127.0.0.1:9092 --redis redis://127.0.0.1:6379')
    .action(run(async (flags) => (await bus()).runRelay(dataDirOf(flags), flags)));
  onKafka('dead-letters', 'Show the events that consumer groups had to put aside, with the reason.')
    .option('--group <name>', 'only of this group')
    .action(run(async (flags: LetterFlags) => (await bus()).showLetters(flags)));
  onKafka('replay', 'Hand dead letters to their groups again. One that fails again becomes a dead letter again.')
    .option('--group <name>', 'all of this group')
    .option('--event <id>', 'only the one of this event')
    .option('--all', 'all of them')
    .addHelpText('after', '\nExample:\n  agon bus replay --group policy.hold-stakes --kafka 127.0.0.1:9092')
    .action(run(async (flags: LetterFlags) => (await bus()).replayLetters(flags)));
}
