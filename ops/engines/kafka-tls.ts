import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ownCertificate } from '../../gateway/eventstore/certificate.js';
import { freePort } from './server.js';

/** A Kafka's listeners with TLS for clients of a network, beside the plain one of this machine, and what it takes to get in. */
export interface SecuredKafka {
  /** host:port of every broker that wants a user: TLS, and SASL by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. */
  readonly sasl: readonly string[];
  /** host:port of every broker that wants a certificate of its clients. */
  readonly mutual: readonly string[];
  readonly user: string;
  readonly password: string;
  /** PEM files: who vouches for the brokers, and a client's certificate with its key. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** What a broker's settings and storage need for them. */
export type TlsListeners = Awaited<ReturnType<typeof makeTlsListeners>>;

/** Makes certificates, a user and free ports for this many brokers. Kafka takes keys and certificates as PEM. */
export async function makeTlsListeners(folder: string, brokers: number) {
  mkdirSync(folder, { recursive: true });
  const file = (name: string) => join(folder, name);
  const nowMs = Date.now();
  const broker = ownCertificate(file('broker.crt'), file('broker.key'), '127.0.0.1', nowMs);
  ownCertificate(file('client.crt'), file('client.key'), '127.0.0.1', nowMs);
  writeFileSync(file('broker.pem'), Buffer.concat([broker.key, broker.cert]), { mode: 0o600 });
  const ports: { sasl: number; mutual: number }[] = [];
  for (let i = 0; i < brokers; i++) ports.push({ sasl: await freePort(), mutual: await freePort() });
  const [user, password] = ['agon', randomBytes(16).toString('base64url')];
  const plain = `org.apache.kafka.common.security.plain.PlainLoginModule required user_${user}="${password}";`;
  const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;';
  const secured: SecuredKafka = {
    sasl: ports.map((port) => `127.0.0.1:${port.sasl}`),
    mutual: ports.map((port) => `127.0.0.1:${port.mutual}`),
    user,
    password,
    ca: file('broker.crt'),
    cert: file('client.crt'),
    key: file('client.key'),
  };
  return {
    secured,
    /** As Kafka names them in `listeners`, of the broker with this index. */
    listeners: (i: number) => [`USERS://127.0.0.1:${ports[i]?.sasl}`, `MUTUAL://127.0.0.1:${ports[i]?.mutual}`],
    protocols: 'USERS:SASL_SSL,MUTUAL:SSL',
    settings: [
      'ssl.keystore.type=PEM',
      `ssl.keystore.location=${file('broker.pem')}`,
      'ssl.truststore.type=PEM',
      `ssl.truststore.location=${file('client.crt')}`,
      'listener.name.mutual.ssl.client.auth=required',
      'sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
      `listener.name.users.plain.sasl.jaas.config=${plain}`,
      `listener.name.users.scram-sha-256.sasl.jaas.config=${scram}`,
      `listener.name.users.scram-sha-512.sasl.jaas.config=${scram}`,
    ],
    format: ['SCRAM-SHA-256', 'SCRAM-SHA-512'].map(
      (mechanism) => `--add-scram=${mechanism}=[name=${user},password=${password}]`,
    ),
  };
}
