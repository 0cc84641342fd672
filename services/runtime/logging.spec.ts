import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { AgonError, Secret } from '../kernel/index.js';
import { createLog, type LogOptions } from './logging.js';

function logged(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const log = createLog({ level: 'info', people: false, write: (line) => void lines.push(line), ...options });
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown> };
}

const KEY = `agon_ada_${'0'.repeat(12)}_${'f'.repeat(64)}`;
const JWT = 'eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl';
const SIGNATURE = `t=1700000000,v1=${'a'.repeat(64)},v0=${'b'.repeat(64)}`;
const PEM = '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\n-----END PRIVATE KEY-----';

describe('the log', () => {
  it('is a line of JSON each, with level, time and fields', () => {
    const { log, lines, last } = logged();
    log.info({ requestId: 'r', correlationId: 'c', actorId: 'ada', ms: 1.5 }, 'request');
    expect(lines).toHaveLength(1);
    expect(lines[0]?.endsWith('}\n')).toBe(true);
    const expected = { level: 'info', msg: 'request', requestId: 'r', correlationId: 'c', actorId: 'ada', ms: 1.5 };
    expect(last()).toMatchObject({ ...expected, time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) });
  });

  it.each(['error', 'warn', 'info', 'debug'] as const)('says what is at least as grave as %s', (level) => {
    const { log, lines } = logged({ level });
    for (const each of ['fatal', 'error', 'warn', 'info', 'debug'] as const) log[each]('x');
    const expected = { error: 2, warn: 3, info: 4, debug: 5 };
    expect(lines).toHaveLength(expected[level]);
    expect(logged({ level: 'silent' }).log.isLevelEnabled('fatal')).toBe(false);
  });

  it('tells an error with its code and its cause, and survives what cannot be written down', () => {
    const { log, last, lines } = logged();
    log.error({ err: new AgonError('STORE.FULL', 'no room', { left: 0n }, { cause: new Error('ENOSPC') }) }, 'oh');
    expect(last()).toMatchObject({
      err: { type: 'AgonError', code: 'STORE.FULL', message: expect.stringMatching(/ENOSPC/) },
    });
    const ring: Record<string, unknown> = {};
    ring.self = ring;
    log.error({ ring, many: Array.from({ length: 999 }, (_, i) => i) }, 'odd');
    expect(lines.at(-1)?.length).toBeLessThan(2_000);
  });
});

describe('secrets', () => {
  it.each<[name: string, fields: object, secret: string]>([
    ['a header', { headers: { authorization: 'Bearer abc.def' } }, 'abc.def'],
    ['a cookie', { req: { headers: { cookie: 'session=abcdef' } } }, 'abcdef'],
    ['a password, deep down', { a: { b: [{ c: { newPassword: 'hunter2' } }] } }, 'hunter2'],
    ['a token', { refresh_token: 'r-123456' }, 'r-123456'],
    ['a code of an authenticator', { totp: '123456' }, '123456'],
    ['a webhook signature by its header', { 'stripe-signature': SIGNATURE }, 'aaaaaa'],
    ['a webhook signature in a text', { text: `got ${SIGNATURE}.` }, 'aaaaaa'],
    ["Stripe's key in a text", { text: 'sk_live_51Habcdef is wrong' }, '51Habcdef'],
    ["Stripe's webhook secret", { text: 'whsec_abcdef' }, 'abcdef'],
    ['an API key', { url: `/x?y=${KEY}` }, 'ffffff'],
    ['a refresh token', { text: `agonr_${'0'.repeat(32)}_${'f'.repeat(64)} came twice` }, 'ffffff'],
    ['a JWT', { text: `no ${JWT}!` }, 'eyJzdWIi'],
    ['an address with a password', { url: 'redis://default:hunter2@db:6379/1' }, 'hunter2'],
    ['an address with a token', { url: 'https://x.example/cb?access_token=abcdef&a=1' }, 'abcdef'],
    ['an e-mail by its name', { email: 'ada at home' }, 'ada'],
    ['an e-mail in a text', { text: 'for ada.l+x@mail.example.org only' }, 'ada.l'],
    ['a private key', { text: PEM }, 'MC4CAQ'],
    ['a setting', { config: { stripe: new Secret('sk_test_x') } }, 'sk_test_x'],
    ["an error's message", { err: new Error('401 for Bearer abcdef') }, 'abcdef'],
    ["an error's own fields", { err: Object.assign(new Error('no'), { config: { apiKey: 'abcdef' } }) }, 'abcdef'],
    ["an error's details", { err: new AgonError('X', 'no', { token: 'abcdef' }) }, 'abcdef'],
  ])('are not told: %s', (_name, fields, secret) => {
    for (const people of [false, true]) {
      const { log, lines } = logged({ people });
      log.warn(fields, 'something');
      expect(lines.join('')).toContain('something');
      expect(lines.join('')).not.toContain(secret);
    }
  });

  it('are not told in a message either', () => {
    const { log, lines } = logged();
    log.warn(`refused Bearer abcdef of ada@example.com with ${SIGNATURE}`);
    expect(lines[0]).not.toMatch(/abcdef|ada@|aaaa/);
    expect(lines[0]).toMatch(/refused Bearer \[redacted\] of \[redacted\] with \[redacted\]/);
  });

  it('are told from what only looks a little like them', () => {
    const { log, last } = logged();
    const fields = {
      matchId: '7f9c0b3e-1d53-5c8e-9a55-3b6f0f4a2f11',
      hash: 'a'.repeat(64),
      stream: 'wallet-ada',
      t: 1,
    };
    log.warn(fields, 'a basic thing about the bearer');
    expect(last()).toMatchObject(fields);
  });
});

describe('a log whose reader', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agon-log-'));
  const file = join(folder, 'log');
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is there gets every line as soon as it is said', () => {
    const to = openSync(file, 'w');
    const log = createLog({ level: 'info', to });
    for (let i = 0; i < 3; i++) log.info({ i }, 'x'.repeat(100_000));
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(3);
    closeSync(to);
  });

  it('has gone holds nobody up', () => {
    const to = openSync(file, 'r');
    const log = createLog({ level: 'info', to });
    closeSync(to);
    expect(() => log.warn('said to nobody')).not.toThrow();
  });
});

describe('what somebody puts into a text', () => {
  const evil = [
    'a\n{"level":"fatal","msg":"forged"}',
    'a\r\nforged',
    '\u001b[2J\u001b[31mred',
    '\u009b31m',
    'a\u2028b\u2029c',
    'evil\u202etxt',
    '\u0000\u0007\u0008\u007f',
    '\u200b\ufeff',
    '"},"x":{"',
    '\ud800',
    '\\ud800 \\\\ud800 \\\ud800',
  ];

  it.each([false, true])('cannot forge a line, move a cursor or turn text around (for people: %s)', (people) => {
    for (const text of evil) {
      const { log, lines } = logged({ people });
      log.warn({ name: text, [text]: text, deep: [{ text }], err: new Error(text) }, text);
      expect(lines).toHaveLength(1);
      const line = (lines[0] ?? '').slice(0, -1);
      expect(line).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029\u200b\ufeff]/u);
      expect(line.isWellFormed()).toBe(true);
      if (!people) expect(JSON.parse(line)).toMatchObject({ level: 'warn', name: text.toWellFormed() });
    }
  });

  it('is told to people in one line', () => {
    const { log, lines } = logged({ people: true });
    log.warn({ group: 'policy.escrow', err: new AgonError('STORE.FULL', 'no room') }, 'tried again');
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d WARN {2}tried again {2}group=policy.escrow err="STORE.FULL: no room"\n$/);
  });
});
