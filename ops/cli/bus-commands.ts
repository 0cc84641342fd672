import { env } from 'node:process';
import { AgonError } from '../../services/kernel/index.js';
import { replayPolicyLetters, showPolicyLetters } from './letters.js';
import type { Lent, OutputOptions } from './output.js';

export interface BusFlags extends OutputOptions {
  readonly kafka?: string;
  readonly prefix: string;
  readonly kafkaTls?: boolean;
  readonly kafkaCa?: string;
  readonly kafkaCert?: string;
  readonly kafkaKey?: string;
  readonly kafkaSasl?: string;
  readonly kafkaUser?: string;
}

export interface LetterFlags extends BusFlags {
  readonly group?: string;
  readonly event?: string;
  readonly all?: boolean;
}

/** Kafka's client takes a while to load; only these commands wait for it. */
const bus = () => import('./bus.js');

const isOnKafka = ({ kafka = env.KAFKA_BROKERS }: BusFlags) => kafka !== undefined && kafka !== '';

function assertChosen({ group, event, all }: LetterFlags): void {
  if (group !== undefined || event !== undefined || all) return;
  throw new AgonError('CONFIG.INVALID', 'Say which dead letters to replay: --group, --event or --all.');
}

/** `agon bus`: what carries events between processes. */
export function addBusCommands({ program, command, run, dataDirOf }: Lent): void {
  const group = program
    .command('bus')
    .description('What carries events to policies and other processes.')
    .exitOverride();
  const onKafka = (name: string, summary: string) =>
    command(group, name, summary)
      .option('--kafka <host:port,...>', 'brokers of Kafka (default: KAFKA_BROKERS)')
      .option('--prefix <text>', 'what the names of the topics begin with', 'agon')
      .option('--kafka-tls', 'speak TLS to Kafka (default: AGON_KAFKA_TLS, or when a file of it is named)')
      .option('--kafka-ca <file>', "PEM authority that vouches for Kafka (default: AGON_KAFKA_CA, or the system's)")
      .option('--kafka-cert <file>', "PEM certificate of ours, for Kafka's that ask (default: AGON_KAFKA_CERT)")
      .option('--kafka-key <file>', 'PEM key of the certificate (default: AGON_KAFKA_KEY)')
      .option('--kafka-sasl <mechanism>', 'plain, scram-sha-256 or scram-sha-512 (default: AGON_KAFKA_SASL, or none)')
      .option('--kafka-user <name>', 'the user; the password is AGON_KAFKA_PASSWORD (default: AGON_KAFKA_USER)');
  onKafka(
    'relay',
    'Publish the log to Kafka until Ctrl-C, each event once and in order. Run two, and one stands by for the other.',
  )
    .option('--redis <url>', 'where relays agree on who publishes (default: REDIS_URL, or only this one)')
    .option('--lease-ms <n>', 'how long a relay that has died keeps others waiting', '6000')
    .addHelpText('after', '\nExample:\n  agon bus relay --kafka 127.0.0.1:9092 --redis redis://127.0.0.1:6379')
    .action(run(async (flags) => (await bus()).runRelay(dataDirOf(flags), flags)));
  const where = '\nWithout brokers of Kafka, these are the dead letters of the arena that runs on the data folder.';
  onKafka('dead-letters', 'Show the events that consumer groups had to put aside, with the reason.')
    .option('--group <name>', 'only of this group')
    .addHelpText('after', where)
    .action(
      run(async (flags: LetterFlags) =>
        isOnKafka(flags) ? (await bus()).showLetters(flags) : showPolicyLetters(dataDirOf(flags), flags),
      ),
    );
  onKafka('replay', 'Hand dead letters to their groups again. One that fails again becomes a dead letter again.')
    .option('--group <name>', 'all of this group')
    .option('--event <id>', 'only the one of this event')
    .option('--all', 'all of them')
    .addHelpText('after', `${where}\n\nExample:\n  agon bus replay --group policy.wallet.stakes --kafka 127.0.0.1:9092`)
    .action(
      run(async (flags: LetterFlags) => {
        assertChosen(flags);
        return isOnKafka(flags) ? (await bus()).replayLetters(flags) : replayPolicyLetters(dataDirOf(flags), flags);
      }),
    );
}
