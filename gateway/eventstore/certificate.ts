import { createPublicKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { AgonError } from '../../services/kernel/index.js';

interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

const YEARS = 10;
const DAY_MS = 86_400_000;

/** The certificate of these files, in PEM. */
export function certificateIn(certFile: string, keyFile: string): Certificate {
  try {
    const [cert, key] = [readFileSync(certFile), readFileSync(keyFile)];
    new X509Certificate(cert);
    return { cert, key };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AgonError('CONFIG.INVALID', `${certFile} and ${keyFile} are no certificate with its key: ${why}.`);
  }
}

/**
 * A certificate of our own making, kept in these files: clients are told to trust it by its file. A new one is made when
 * it does not name the host, or is about to run out.
 */
export function ownCertificate(certFile: string, keyFile: string, host: string, nowMs: number): Certificate {
  if (existsSync(certFile) && existsSync(keyFile)) {
    const found = certificateIn(certFile, keyFile);
    const x509 = new X509Certificate(found.cert);
    const named = isIP(host) ? x509.checkIP(host) : x509.checkHost(host);
    const daysLeft = (Date.parse(x509.validTo) - nowMs) / DAY_MS;
    if ((named !== undefined || isAnywhere(host)) && daysLeft > 30) return found;
  }
  const made = selfSigned(host, nowMs);
  for (const [file, content, mode] of [[keyFile, made.key, 0o600] as const, [certFile, made.cert, 0o644] as const]) {
    writeFileSync(`${file}.new`, content, { mode });
    renameSync(`${file}.new`, file);
  }
  return made;
}

/** X.509 by hand, for want of anything in Node that writes it: a key on P-256 that vouches for itself. */
function selfSigned(host: string, nowMs: number): Certificate {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid('1.2.840.10045.4.3.2'));
  const name = sequence(set(sequence(oid('2.5.4.3'), tagged(0x0c, Buffer.from('Agon')))));
  const hosts = new Set(['localhost', '127.0.0.1', '::1', host]);
  const names = sequence(...[...hosts].filter((each) => !isAnywhere(each)).map(generalName));
  const constraints = sequence(tagged(0x01, Buffer.from([0xff])));
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x01;
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    algorithm,
    name,
    sequence(time(nowMs - DAY_MS), time(nowMs + YEARS * 365 * DAY_MS)),
    name,
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(extension('2.5.29.19', constraints), extension('2.5.29.17', names))),
  );
  const signature = sign('sha256', body, privateKey);
  const der = sequence(body, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  const pem = ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
  return { cert: Buffer.from(pem), key: Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })) };
}

/** An address to listen on that no client connects to by that name. */
const isAnywhere = (host: string) => host === '0.0.0.0' || host === '::';

const generalName = (host: string) => {
  if (isIP(host) === 4) return tagged(0x87, Buffer.from(host.split('.').map(Number)));
  return isIP(host) === 6 ? tagged(0x87, ipv6(host)) : tagged(0x82, Buffer.from(host));
};

function ipv6(host: string): Buffer {
  const [head = '', tail = ''] = host.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)));
  const [first, last] = [groups(head), groups(tail)];
  const all = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

function tagged(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const length: number[] = [];
  for (let rest = body.length; rest > 0; rest >>= 8) length.unshift(rest & 0xff);
  const header = body.length < 0x80 ? [body.length] : [0x80 | length.length, ...length];
  return Buffer.concat([Buffer.from([tag, ...header]), body]);
}

const sequence = (...items: readonly Buffer[]) => tagged(0x30, ...items);
const set = (...items: readonly Buffer[]) => tagged(0x31, ...items);
const integer = (bytes: Buffer) => tagged(0x02, bytes);
const extension = (id: string, value: Buffer) => sequence(oid(id), tagged(0x04, value));

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const groups = [part & 0x7f];
    for (let more = part >> 7; more > 0; more >>= 7) groups.unshift((more & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tagged(0x06, Buffer.from(bytes));
}

/** Two-digit years, as X.509 wants them until 2049. */
const time = (ms: number) => {
  const iso = new Date(ms).toISOString();
  const digits = iso.replace(/\D/g, '').slice(0, 14);
  return iso < '2050' ? tagged(0x17, Buffer.from(`${digits.slice(2)}Z`)) : tagged(0x18, Buffer.from(`${digits}Z`));
};
