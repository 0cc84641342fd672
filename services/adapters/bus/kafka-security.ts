import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';
import type { KafkaConfig, SASLOptions } from 'kafkajs';
import { AgonError, type Secret } from '../../kernel/index.js';
import type { Config } from '../../runtime/settings.js';

type KafkaSecuritySettings = Pick<
  Config,
  'kafkaTls' | 'kafkaCa' | 'kafkaCert' | 'kafkaKey' | 'kafkaSasl' | 'kafkaUser' | 'kafkaPassword'
>;

/** How a client shows who it is, and whom it believes. What is read from files is read once. */
export interface KafkaSecurity {
  readonly tls?: { readonly ca?: Buffer; readonly client?: { readonly cert: Buffer; readonly key: Buffer } };
  readonly sasl?: { readonly mechanism: Mechanism; readonly username: string; readonly password: Secret };
}

type Mechanism = NonNullable<KafkaSecuritySettings['kafkaSasl']>;

/** What the configuration says, with its files read and looked at; nothing when Kafka is to be spoken to in clear. */
export function securityOf(settings: KafkaSecuritySettings, brokers: readonly string[]): KafkaSecurity {
  const { kafkaTls, kafkaCa, kafkaSasl: mechanism, kafkaUser: username, kafkaPassword: password } = settings;
  const elsewhere = brokers.filter((broker) => !/^(127\.\d+\.\d+\.\d+|localhost):/.test(broker));
  if (!kafkaTls && mechanism === 'plain' && elsewhere.length > 0) {
    throw new AgonError(
      'CONFIG.INVALID',
      `PLAIN would send the password in clear to ${elsewhere.join(', ')}. Set AGON_KAFKA_TLS=on, or use SCRAM.`,
    );
  }
  const ca = kafkaCa === undefined ? undefined : certificate('AGON_KAFKA_CA', kafkaCa);
  const client = clientOf(settings);
  const tls = { ...(ca ? { ca } : {}), ...(client ? { client } : {}) };
  const sasl = mechanism && username && password ? { mechanism, username, password } : undefined;
  return { ...(kafkaTls ? { tls } : {}), ...(sasl ? { sasl } : {}) };
}

function clientOf({ kafkaCert, kafkaKey }: KafkaSecuritySettings) {
  if (kafkaCert === undefined || kafkaKey === undefined) return undefined;
  const cert = certificate('AGON_KAFKA_CERT', kafkaCert);
  const key = contents('AGON_KAFKA_KEY', kafkaKey);
  let fits = false;
  try {
    fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    throw unusable('AGON_KAFKA_KEY', kafkaKey, 'it is no key in PEM without a password', error);
  }
  if (!fits) throw unusable('AGON_KAFKA_KEY', kafkaKey, `it is not the key of ${kafkaCert}`);
  return { cert, key };
}

function certificate(setting: string, file: string): Buffer {
  const pem = contents(setting, file);
  try {
    new X509Certificate(pem);
    return pem;
  } catch (error) {
    throw unusable(setting, file, 'it is no certificate in PEM', error);
  }
}

function contents(setting: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw unusable(setting, file, (error as Error).message, error);
  }
}

const unusable = (setting: string, file: string, why: string, cause?: unknown) =>
  new AgonError('CONFIG.INVALID', `${file} (${setting}) cannot be used: ${why}.`, { setting, file }, { cause });

/** As the client takes it. This is where the password is told, and nowhere else. */
export function clientSecurity({ tls, sasl }: KafkaSecurity = {}): Pick<KafkaConfig, 'ssl' | 'sasl'> {
  return {
    ...(tls ? { ssl: { ...(tls.ca ? { ca: [tls.ca] } : {}), ...tls.client } } : {}),
    ...(sasl ? { sasl: { ...sasl, password: sasl.password.reveal() } as SASLOptions } : {}),
  };
}

/** Of ours: whom the broker's certificate should name, who should have signed it, how long it is good. */
const UNTRUSTED = /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_|ERR_TLS_CERT_ALTNAME)/;
/** Of theirs: what brokers say to the certificate of a client, or to none. */
const CERTIFICATE_REFUSED =
  /^ERR_SSL_.*ALERT_(BAD_CERTIFICATE|CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERT|NO_CERT|HANDSHAKE)/;
const PROBE_MS = 3_000;

/** Why nobody can be reached there, in words that say what to set. */
export async function connectionError(
  error: unknown,
  brokers: readonly string[],
  { tls, sasl }: KafkaSecurity = {},
): Promise<AgonError> {
  const { name, message, code, type } = rootOf(error);
  const at = `Kafka at ${brokers.join(', ')}`;
  const said = (ours: string, text: string) => new AgonError(ours, text, { brokers }, { cause: error });
  if (name === 'KafkaJSSASLAuthenticationError') {
    const advice =
      'Check AGON_KAFKA_USER, AGON_KAFKA_PASSWORD and AGON_KAFKA_SASL, which has to be one that it offers.';
    return said('BUS.CREDENTIALS', `${at} does not let ${sasl?.username} in: ${message}. ${advice}`);
  }
  if (type === 'ILLEGAL_SASL_STATE') {
    return said('BUS.CREDENTIALS', `${at} wants no user at this port. Leave AGON_KAFKA_SASL out, or use another port.`);
  }
  if (CERTIFICATE_REFUSED.test(code)) {
    const what = tls?.client ? "does not accept this client's certificate" : 'wants a certificate of its clients';
    const advice = 'AGON_KAFKA_CERT and AGON_KAFKA_KEY have to name one that its truststore knows.';
    return said('BUS.CREDENTIALS', `${at} ${what}. ${advice}`);
  }
  if (UNTRUSTED.test(code)) {
    const advice =
      'AGON_KAFKA_CA has to name the certificate of the authority that signed it, and brokers have to be ' +
      'addressed by a name that it holds.';
    return said('BUS.UNTRUSTED', `The certificate of ${at} is not to be trusted: ${message}. ${advice}`);
  }
  const cut = code === 'ECONNRESET' || code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER';
  // One that is just being started again cuts connections, too.
  if (tls && cut && !(await speaksTls(brokers))) {
    return said('BUS.TLS', `${at} does not speak TLS at this port. Use its TLS port, or set AGON_KAFKA_TLS=off.`);
  }
  if (name === 'KafkaJSConnectionClosedError' && !tls && (await speaksTls(brokers))) {
    return said(
      'BUS.TLS',
      `${at} speaks TLS at this port. Set AGON_KAFKA_TLS=on, and AGON_KAFKA_CA if it is your own.`,
    );
  }
  if (name === 'KafkaJSConnectionClosedError' && !sasl) {
    const advice = 'It probably wants a user: set AGON_KAFKA_SASL, AGON_KAFKA_USER and AGON_KAFKA_PASSWORD.';
    return said('BUS.CREDENTIALS', `${at} answers, and hangs up when it is asked something. ${advice}`);
  }
  return said('BUS.UNREACHABLE', `${at} does not answer: ${message}. Is it running there?`);
}

/** The client wraps errors when it gives up; the innermost says what happened. */
function rootOf(error: unknown): { name: string; message: string; code: string; type: string } {
  let inner = error as { name?: string; message?: string; code?: unknown; type?: string; cause?: unknown };
  while (inner.cause instanceof Error) inner = inner.cause;
  const { name = '', message = '', code = '', type = '' } = inner;
  return { name, message: message.replace(/^Connection error: /, '').trim(), code: String(code), type };
}

/** Asked only after a connection was closed without a word, to say why. No certificate is believed here. */
async function speaksTls(brokers: readonly string[]): Promise<boolean> {
  const asked = brokers.map((broker) => {
    const at = broker.lastIndexOf(':');
    return new Promise<boolean>((resolve) => {
      const options = { host: broker.slice(0, at), port: Number(broker.slice(at + 1)), rejectUnauthorized: false };
      const socket = connect(options, () => end(true));
      const timer = setTimeout(() => end(false), PROBE_MS);
      const end = (answer: boolean) => {
        clearTimeout(timer);
        socket.destroy();
        resolve(answer);
      };
      socket.once('error', () => end(false));
    });
  });
  return (await Promise.all(asked)).includes(true);
}
