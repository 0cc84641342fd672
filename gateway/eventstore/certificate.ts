import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { AgonError } from '../../services/kernel/index.js';

interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

const AUTHORITY_DAYS = 3_650;
/** What clients accept of a server's certificate: about a year. */
const LEAF_DAYS = 397;
const LEFT_DAYS_MIN = 30;
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
 * Certificates for a server, by an authority of our own that is kept in these files: clients are told to trust it by its
 * file. Each is made anew before it runs out, also while the server runs, which asks whenever somebody connects. The
 * authority lasts for years, and is made anew at a start.
 */
export function ownCertificates(
  certFile: string,
  keyFile: string,
  host: string,
  nowMs: () => number,
): () => Certificate {
  const authority = ownAuthority(certFile, keyFile, nowMs());
  let current: Certificate | undefined;
  return () => {
    if (!current || daysLeft(current, nowMs()) < LEFT_DAYS_MIN) current = leafOf(authority, host, nowMs());
    return current;
  };
}

const daysLeft = ({ cert }: Certificate, nowMs: number) =>
  (Date.parse(new X509Certificate(cert).validTo) - nowMs) / DAY_MS;

function ownAuthority(certFile: string, keyFile: string, nowMs: number): Certificate {
  if (existsSync(certFile) && existsSync(keyFile)) {
    const found = certificateIn(certFile, keyFile);
    if (new X509Certificate(found.cert).ca && daysLeft(found, nowMs) > LEFT_DAYS_MIN) return found;
  }
  return written(authorityOf(nowMs), certFile, keyFile);
}

function written(made: Certificate, certFile: string, keyFile: string): Certificate {
  for (const [file, content, mode] of [[keyFile, made.key, 0o600] as const, [certFile, made.cert, 0o644] as const]) {
    writeFileSync(`${file}.new`, content, { mode });
    renameSync(`${file}.new`, file);
  }
  return made;
}

/** One that vouches for itself, in these files, for whoever has a use for no more: another server's, or a client's. */
export function ownCertificate(certFile: string, keyFile: string, host: string, nowMs: number): Certificate {
  const { privateKey, publicKey } = newKey();
  const name = nameOf('Agon');
  const extensions = [
    extension('2.5.29.19', sequence(tagged(0x01, Buffer.from([0xff])))),
    extension('2.5.29.17', namesOf(host)),
  ];
  const claims = { subject: name, issuer: name, publicKey, extensions, days: AUTHORITY_DAYS, nowMs };
  return written(signed(claims, privateKey, privateKey), certFile, keyFile);
}

/** An authority vouches for itself. Its name is its own, so that a client may trust two of them. */
function authorityOf(nowMs: number): Certificate {
  const { privateKey, publicKey } = newKey();
  const name = nameOf(`Agon ${randomBytes(4).toString('hex')}`);
  const extensions = [
    extension('2.5.29.19', sequence(tagged(0x01, Buffer.from([0xff]))), true),
    // Signs certificates and lists of those that it takes back.
    extension('2.5.29.15', tagged(0x03, Buffer.from([1, 0x06])), true),
    extension('2.5.29.14', tagged(0x04, keyIdOf(publicKey))),
  ];
  const days = AUTHORITY_DAYS;
  return signed({ subject: name, issuer: name, publicKey, extensions, days, nowMs }, privateKey, privateKey);
}

/** What a server shows. Many clients refuse an authority in its place. */
function leafOf(authority: Certificate, host: string, nowMs: number): Certificate {
  const { privateKey, publicKey } = newKey();
  const authorityKey = createPrivateKey(authority.key);
  const extensions = [
    extension('2.5.29.19', sequence(), true),
    extension('2.5.29.15', tagged(0x03, Buffer.from([7, 0x80])), true),
    extension('2.5.29.37', sequence(oid('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.35', sequence(tagged(0x80, keyIdOf(createPublicKey(authorityKey))))),
    extension('2.5.29.17', namesOf(host)),
  ];
  const issuer = subjectIn(new X509Certificate(authority.cert).raw);
  const subject = nameOf('Agon');
  const days = Math.min(LEAF_DAYS, Math.floor(daysLeft(authority, nowMs)));
  return signed({ subject, issuer, publicKey, extensions, days, nowMs }, authorityKey, privateKey);
}

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

interface Claims {
  readonly subject: Buffer;
  readonly issuer: Buffer;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
  readonly days: number;
  readonly nowMs: number;
}

/** X.509 by hand, for want of anything in Node that writes it. */
function signed(claims: Claims, signer: KeyObject, key: KeyObject): Certificate {
  const algorithm = sequence(oid('1.2.840.10045.4.3.2'));
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x01;
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    algorithm,
    claims.issuer,
    sequence(time(claims.nowMs - DAY_MS), time(claims.nowMs + claims.days * DAY_MS)),
    claims.subject,
    claims.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...claims.extensions)),
  );
  const signature = sign('sha256', body, signer);
  const der = sequence(body, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  const pem = ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
  return { cert: Buffer.from(pem), key: Buffer.from(key.export({ type: 'pkcs8', format: 'pem' })) };
}

const nameOf = (text: string) => sequence(set(sequence(oid('2.5.4.3'), tagged(0x0c, Buffer.from(text)))));

const keyIdOf = (key: KeyObject) =>
  createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest();

/** The subject of a certificate, byte for byte as it stands there: issuers are compared so. */
function subjectIn(der: Buffer): Buffer {
  const [body = der] = partsOf(der);
  // Version, serial number, algorithm, issuer, validity, subject.
  return partsOf(body)[5] ?? nameOf('Agon');
}

/** What a sequence holds, each part with its header. */
function partsOf(der: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = headerOf(der, 0).start; at < der.length; ) {
    const { end } = headerOf(der, at);
    parts.push(der.subarray(at, end));
    at = end;
  }
  return parts;
}

function headerOf(der: Buffer, at: number): { start: number; end: number } {
  const first = der[at + 1] ?? 0;
  if (first < 0x80) return { start: at + 2, end: at + 2 + first };
  const bytes = first & 0x7f;
  const start = at + 2 + bytes;
  return { start, end: start + der.readUIntBE(at + 2, bytes) };
}

/** The host as clients may call it, and this machine. */
const namesOf = (host: string) => {
  const hosts = new Set(['localhost', '127.0.0.1', '::1', host]);
  return sequence(...[...hosts].filter((each) => !isAnywhere(each)).map(generalName));
};

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
const extension = (id: string, value: Buffer, critical = false) =>
  sequence(oid(id), ...(critical ? [tagged(0x01, Buffer.from([0xff]))] : []), tagged(0x04, value));

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
