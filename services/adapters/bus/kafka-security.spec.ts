import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { ownCertificate } from '../../../gateway/eventstore/certificate.js';
import { parseConfig } from '../../runtime/settings.js';
import { connectionError, securityOf } from './kafka-security.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-kafka-security-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const settings = (env: Record<string, string>) => securityOf(parseConfig({}, env), ['kafka.example:9093']);
const file = (name: string, content?: string) => {
  const path = join(folder, name);
  if (content !== undefined) writeFileSync(path, content);
  return path;
};

describe('the security of Kafka', () => {
  const made = (name: string) => {
    const [cert, key] = [file(`${name}.crt`), file(`${name}.key`)];
    ownCertificate(cert, key, 'localhost', Date.now());
    return { cert, key };
  };

  it('is read from files, and nobody who looks at it sees the password', () => {
    const { cert, key } = made('ada');
    const user = { AGON_KAFKA_SASL: 'plain', AGON_KAFKA_USER: 'ada', AGON_KAFKA_PASSWORD: 'hidden' };
    const security = settings({ ...user, AGON_KAFKA_CA: cert, AGON_KAFKA_CERT: cert, AGON_KAFKA_KEY: key });
    expect(security).toMatchObject({ tls: { ca: expect.any(Buffer) }, sasl: { mechanism: 'plain', username: 'ada' } });
    expect(JSON.stringify(security) + inspect(security, { depth: 9 })).not.toMatch(/hidden/);
    expect(settings({})).toEqual({});
  });

  it.each<[string, () => Record<string, string>, RegExp]>([
    ['a file that is not there', () => ({ AGON_KAFKA_CA: file('none') }), /\(AGON_KAFKA_CA\) cannot be used: ENOENT/],
    ['a file of something else', () => ({ AGON_KAFKA_CA: file('text', 'hello') }), /no certificate in PEM/],
    [
      'a key that is none',
      () => ({ AGON_KAFKA_CERT: made('a').cert, AGON_KAFKA_KEY: file('text', 'hello') }),
      /\(AGON_KAFKA_KEY\) cannot be used: it is no key in PEM without a password/,
    ],
    [
      "another's key",
      () => ({ AGON_KAFKA_CERT: made('a').cert, AGON_KAFKA_KEY: made('b').key }),
      /it is not the key of .*a\.crt/,
    ],
    [
      'a password in clear over a network',
      () => ({ AGON_KAFKA_SASL: 'plain', AGON_KAFKA_USER: 'ada', AGON_KAFKA_PASSWORD: 'hidden' }),
      /would send the password in clear to kafka\.example:9093/,
    ],
  ])('refuses %s', (_what, env, message) => {
    expect(() => settings(env())).toThrow(
      expect.objectContaining({ code: 'CONFIG.INVALID', message: expect.stringMatching(message) }),
    );
  });

  it('takes a password in clear on this machine, and SCRAM anywhere', () => {
    const user = { AGON_KAFKA_USER: 'ada', AGON_KAFKA_PASSWORD: 'hidden' };
    expect(settings({ ...user, AGON_KAFKA_SASL: 'scram-sha-256' })).not.toHaveProperty('tls');
    const plain = parseConfig({}, { ...user, AGON_KAFKA_SASL: 'plain' });
    expect(securityOf(plain, ['127.0.0.1:9092', 'localhost:9093'])).toHaveProperty('sasl');
  });

  it('does not believe a broker whose certificate names another host', async () => {
    const mismatch = Object.assign(new Error('Host: a is not in the certificate'), {
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    const wrapped = new Error('Gave up', { cause: mismatch });
    expect(await connectionError(wrapped, ['a:1'], { tls: {} })).toMatchObject({
      code: 'BUS.UNTRUSTED',
      message: expect.stringContaining('Host: a is not in the certificate'),
    });
  });

  it('has a word for what nobody foresaw', async () => {
    expect(await connectionError(new Error('out of paper'), ['a:1'])).toMatchObject({
      code: 'BUS.UNREACHABLE',
      message: 'Kafka at a:1 does not answer: out of paper. Is it running there?',
    });
  });
});
