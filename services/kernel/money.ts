import { z } from 'zod';
import { AgonError } from './errors.js';

/**
 * Amounts are integer minor units. In events and commands they are decimal strings, because JSON numbers lose
 * precision in some readers and canonical JSON has no big integers; in deciders and views they are bigint.
 */
export const cents = z.string().regex(/^(0|[1-9]\d{0,17})$/, 'must be a whole number of cents, written as a string');
export const positiveCents = cents.refine((value) => value !== '0', 'must be more than zero');

/** PLAY is the credit that costs nothing; real currencies join with payments. */
export const currency = z.string().regex(/^[A-Z]{3,8}$/, 'must be a currency code like PLAY or USD');

const SHAPE = /^(-?)(\d+)(?:\.(\d{1,2}))?$/;

/** "12.5" → 1250n. Refuses more than two decimals instead of rounding somebody's money. */
export function parseMoney(text: string): bigint {
  const match = SHAPE.exec(text.trim());
  if (!match) throw new AgonError('MONEY.INVALID', `"${text}" is not an amount like 12 or 12.50.`);
  const [, sign, whole = '0', fraction = ''] = match;
  const value = BigInt(whole) * 100n + BigInt(fraction.padEnd(2, '0'));
  return sign === '-' ? -value : value;
}

/** 1250n → "12.50". */
export function formatMoney(amountCents: bigint): string {
  const digits = (amountCents < 0n ? -amountCents : amountCents).toString().padStart(3, '0');
  return `${amountCents < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
