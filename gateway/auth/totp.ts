import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const STEP_MS = 30_000;
/** A clock may be one step off, either way. */
const DRIFT_STEPS = 1;

export interface TotpOptions {
  readonly digits?: number;
  readonly algorithm?: 'sha1' | 'sha256' | 'sha512';
}

/** 160 random bits, as RFC 4226 recommends, in the base32 that apps take. */
export const newTotpSecret = (): string => toBase32(randomBytes(20));

/** What apps read from a QR code. */
export function totpUri(secret: string, accountId: string): string {
  return `otpauth://totp/Agon:${accountId}?secret=${secret}&issuer=Agon&algorithm=SHA1&digits=6&period=30`;
}

/** RFC 6238: an HMAC of the number of half minutes since 1970, cut to a few digits. */
export function totpAt(key: Buffer, timeMs: number, { digits = 6, algorithm = 'sha1' }: TotpOptions = {}): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(timeMs / STEP_MS)));
  const mac = createHmac(algorithm, key).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0xf;
  const number = (mac.readUInt32BE(offset) & 0x7f_ff_ff_ff) % 10 ** digits;
  return String(number).padStart(digits, '0');
}

/** The step that a code is of, if it is a good one. A step is good once: `lastStep` and those before are spent. */
export function stepOf(code: string, secret: string, nowMs: number, lastStep: number): number | undefined {
  const key = fromBase32(secret);
  const now = Math.floor(nowMs / STEP_MS);
  let found: number | undefined;
  for (let step = now - DRIFT_STEPS; step <= now + DRIFT_STEPS; step++) {
    if (sameText(totpAt(key, step * STEP_MS), code) && step > lastStep) found = step;
  }
  return found;
}

const sameText = (a: string, b: string) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

export function toBase32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const groups = bits.match(/.{1,5}/g) ?? [];
  return groups.map((group) => ALPHABET[Number.parseInt(group.padEnd(5, '0'), 2)]).join('');
}

export function fromBase32(text: string): Buffer {
  const bits = [...text].map((letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, '0')).join('');
  const bytes = bits.match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
}
