import { env } from 'node:process';
import { AgonError, type DeadLetter } from '../../services/kernel/index.js';
import type { Config } from '../../services/runtime/settings.js';
import { type AgonCommand, configOf, lazy } from './command.js';
import { colour, type Flags, type Outcome, table } from './output.js';
import { ask } from './remote.js';

type KafkaSetting = 'kafkaTls' | 'kafkaCa' | 'kafkaCert' | 'kafkaKey' | 'kafkaSasl' | 'kafkaUser';

export interface BusFlags extends Flags, Partial<Pick<Config, KafkaSetting>> {
  readonly kafka?: string;
  readonly prefix: string;
}

export interface RelayFlags extends BusFlags {
  readonly redis?: string;
  readonly leaseMs: string;
}

export interface DeadLetterFlags extends BusFlags {
  readonly group?: string;
  readonly event?: string;
  readonly all?: boolean;
}

/** Kafka's client takes a while to load; only these commands wait for it. */
const onKafka = () => import('./kafka.js');

const isOnKafka = ({ kafka = env.KAFKA_BROKERS }: BusFlags) => kafka !== undefined && kafka !== '';

/** `agon bus`: what carries events between processes. */
export function addBusCommands(program: AgonCommand): void {
  const bus = program.group('bus', 'What carries events to policies and other processes.');
  const ofBus = (name: string, summary: string) =>
    bus(name, summary)
      .option('--kafka <host:port,...>', 'brokers of Kafka (default: KAFKA_BROKERS)')
      .option('--prefix <text>', 'what the names of the topics begin with', 'agon')
      .option('--kafka-tls', 'speak TLS to Kafka (default: AGON_KAFKA_TLS, or when a file of it is named)')
      .option('--kafka-ca <file>', "PEM authority that vouches for Kafka (default: AGON_KAFKA_CA, or the system's)")
      .option('--kafka-cert <file>', "PEM certificate of ours, for Kafka's that ask (default: AGON_KAFKA_CERT)")
      .option('--kafka-key <file>', 'PEM key of the certificate (default: AGON_KAFKA_KEY)')
      .option('--kafka-sasl <mechanism>', 'plain, scram-sha-256 or scram-sha-512 (default: AGON_KAFKA_SASL, or none)')
      .option('--kafka-user <name>', 'the user; the password is AGON_KAFKA_PASSWORD (default: AGON_KAFKA_USER)');
  ofBus(
    'relay',
    'Publish the log to Kafka until Ctrl-C, each event once and in order. Run two, and one stands by for the other.',
  )
    .option('--redis <url>', 'where relays agree on who publishes (default: REDIS_URL, or only this one)')
    .option('--lease-ms <n>', 'how long a relay that has died keeps others waiting', '6000')
    .example('agon bus relay --kafka 127.0.0.1:9092 --redis redis://127.0.0.1:6379')
    .runs(lazy(onKafka, 'runRelay'));
  const where = '\nWithout brokers of Kafka, these are the dead letters of the arena that runs on the data folder.';
  ofBus('dead-letters', 'Show the events that consumer groups had to put aside, with the reason.')
    .option('--group <name>', 'only of this group')
    .addHelpText('after', where)
    .runs(async (flags: DeadLetterFlags) => {
      const found = isOnKafka(flags)
        ? await (await onKafka()).deadLettersOnKafka(flags, (all) => all.list(filterOf(flags)))
        : await deadLettersAt(flags);
      return { json: found, text: found.length === 0 ? 'No dead letters.' : deadLettersText(found) };
    });
  ofBus('replay', 'Hand dead letters to their groups again. One that fails again becomes a dead letter again.')
    .option('--group <name>', 'all of this group')
    .option('--event <id>', 'only the one of this event')
    .option('--all', 'all of them')
    .addHelpText('after', `${where}\n\nExample:\n  agon bus replay --group policy.wallet.stakes --kafka 127.0.0.1:9092`)
    .runs(async (flags: DeadLetterFlags) => {
      if (flags.group === undefined && flags.event === undefined && !flags.all) {
        throw new AgonError('CONFIG.INVALID', 'Say which dead letters to replay: --group, --event or --all.');
      }
      if (!isOnKafka(flags)) return replayAt(flags);
      const { done: letters } = await (await onKafka()).deadLettersOnKafka(flags, (all) => all.replay(filterOf(flags)));
      const text = letters.length === 0 ? 'No dead letters.' : `${colour.green('handed out again')}: ${letters.length}`;
      return { json: { replayed: letters.length, letters }, text };
    });
}

const filterOf = ({ group: name, event }: DeadLetterFlags) => ({
  ...(name === undefined ? {} : { group: name }),
  ...(event === undefined ? {} : { eventId: event }),
});

const FIELDS = '{ group position eventId attempts code message }';

/** What the policies of a running arena gave up on. */
const deadLettersAt = (flags: DeadLetterFlags) =>
  ask<DeadLetter[]>(configOf({ data: flags.data }).dataDir, 'busLetters(group: String)', FIELDS, {
    group: flags.group ?? null,
  });

/** Hands them out again. Not good if one of them fails again. */
async function replayAt(flags: DeadLetterFlags): Promise<Outcome> {
  const field = 'mutation replayBusLetters(group: String, eventId: String)';
  const which = { group: flags.group ?? null, eventId: flags.event ?? null };
  const fields = `{ done ${FIELDS} left ${FIELDS} }`;
  const replayed = await ask<{ done: DeadLetter[]; left: DeadLetter[] }>(
    configOf({ data: flags.data }).dataDir,
    field,
    fields,
    which,
  );
  const { done, left } = replayed;
  const text = [
    done.length + left.length === 0 ? 'No dead letters.' : `${colour.green('done')}: ${done.length}`,
    ...(left.length > 0 ? [`${colour.red('failed again')}: ${left.length}`, deadLettersText(left)] : []),
  ];
  return { json: replayed, text: text.join('\n'), good: left.length === 0 };
}

/** Those on Kafka say of which type their event is. */
function deadLettersText(letters: readonly (DeadLetter & { readonly type?: string })[]): string {
  const typed = letters.some(({ type }) => type !== undefined);
  const rows = letters.map(({ group: name, position, type = '', attempts, code, message, eventId }) => {
    return [name, `${position}`, ...(typed ? [type] : []), attempts, code, message, eventId];
  });
  return table(['group', '>position', ...(typed ? ['event'] : []), '>attempts', 'error', '', 'id'], rows);
}
