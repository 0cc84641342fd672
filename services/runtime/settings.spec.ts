import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parseConfig } from './settings.js';

describe('the configuration', () => {
  it('has a default for everything', () => {
    expect(parseConfig()).toEqual({
      dataDir: resolve('.agon'),
      host: '127.0.0.1',
      port: 4600,
      egress: undefined,
      proxies: 0,
      corsOrigins: [],
      spectatorDelayMs: 0,
      introspection: true,
      grpcPort: undefined,
      storeUrl: undefined,
      eventstorePort: undefined,
      eventstoreCert: undefined,
      eventstoreKey: undefined,
      eventstoreInsecure: false,
      playPort: undefined,
      playCert: undefined,
      playKey: undefined,
      playClientCa: undefined,
      playReflection: false,
      playTurnMs: 2_000,
      playBankMs: 60_000,
      playJoinMs: 30_000,
      playWaitMs: 600_000,
      stakesWaitS: 3_600,
      runnerWaitS: 604_800,
      runner: true,
      leaseMs: 30_000,
      cells: availableParallelism(),
      rakeBps: 1000,
      stripeSecretKey: undefined,
      stripeWebhookSecret: undefined,
      stripeUrl: 'https://api.stripe.com',
      publicUrl: undefined,
      registration: true,
      oidcIssuer: undefined,
      oidcClientId: undefined,
      oidcClientSecret: undefined,
      depositClearingS: 604_800,
      disputeWindowHours: 48,
      computePrice: 0,
      analytics: true,
      analyticsPort: undefined,
      analyticsDays: 0,
      redisUrl: undefined,
      kafkaTls: false,
      kafkaCa: undefined,
      kafkaCert: undefined,
      kafkaKey: undefined,
      kafkaSasl: undefined,
      kafkaUser: undefined,
      kafkaPassword: undefined,
      clickhouseUrl: undefined,
      persistedQueries: undefined,
      webhookPrivate: false,
      databaseUrl: undefined,
      databasePool: 10,
      kafkaBrokers: [],
      kafkaPrefix: 'agon',
      kafkaPartitions: 3,
      kafkaReplication: undefined,
      arena: undefined,
      views: [],
      healthPort: 0,
      operatorToken: undefined,
      runnerToken: undefined,
      now: undefined,
      blockedWords: undefined,
      moderationUrl: undefined,
      moderationSecret: undefined,
      moderationTimeoutMs: 2_000,
      moderationFails: 'open',
      otlpEndpoint: undefined,
      traceRatio: 1,
      logLevel: 'warn',
    });
  });

  it.each<[string, Parameters<typeof parseConfig>, object]>([
    ['the environment', [{}, { AGON_PORT: '81', AGON_HOST: '0.0.0.0' }], { port: 81, host: '0.0.0.0' }],
    [
      'origins',
      [{}, { AGON_CORS_ORIGINS: 'https://a.example,http://b.example:81' }],
      { corsOrigins: ['https://a.example', 'http://b.example:81'] },
    ],
    ['a network as no place to ask for the schema', [{ host: '0.0.0.0' }], { introspection: false }],
    ['a schema for everybody', [{ host: '0.0.0.0' }, { AGON_INTROSPECTION: 'on' }], { introspection: true }],
    ['flags before the environment', [{ port: '82' }, { AGON_PORT: '81' }], { port: 82 }],
    ['numbers as well as text', [{ port: 0, cells: 3 }], { port: 0, cells: 3 }],
    ['an empty variable as none', [{}, { AGON_PORT: '', AGON_HOST: '' }], { port: 4600, host: '127.0.0.1' }],
    ['an undefined variable as none', [{}, { AGON_PORT: undefined }], { port: 4600 }],
    ['an absolute folder as it is', [{ dataDir: '/var/agon' }], { dataDir: '/var/agon' }],
    ['a relative folder as absolute', [{ dataDir: 'data' }], { dataDir: resolve('data') }],
    ['the lowest rake', [{ rakeBps: 500 }], { rakeBps: 500 }],
    ['the highest rake', [{ rakeBps: 1500 }], { rakeBps: 1500 }],
    ['the largest port', [{ port: 65_535 }], { port: 65_535 }],
    ['variables of others', [{}, { PATH: '/bin', AGONY: 'x' }], { port: 4600 }],
    ['reserved variables', [{}, { AGON_TOKEN: 'secret', AGON_REQUIRE_ENGINES: '1' }], { port: 4600 }],
  ])('takes %s', (_what, args, expected) => {
    expect(parseConfig(...args)).toMatchObject(expected);
  });

  it.each<[string, Parameters<typeof parseConfig>, string, RegExp]>([
    ['traces to somewhere', [{}, { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' }], 'CONFIG.INVALID', /^otlpEndpoint/],
    ['more than all traces', [{}, { OTEL_TRACES_SAMPLER_ARG: '2' }], 'CONFIG.INVALID', /^traceRatio/],
    ['texts over a network in clear', [{}, { AGON_MODERATION_URL: 'http://a.b' }], 'CONFIG.INVALID', /^moderationUrl/],
    ['a port that is no number', [{ port: 'http' }], 'CONFIG.INVALID', /^port \(AGON_PORT\) is "http"/],
    ['a port too large', [{ port: 65_536 }], 'CONFIG.INVALID', /^port/],
    ['a negative port', [{}, { AGON_PORT: '-1' }], 'CONFIG.INVALID', /AGON_PORT/],
    ['a fraction', [{ port: 80.5 }], 'CONFIG.INVALID', /^port/],
    ['no cells', [{ cells: 0 }], 'CONFIG.INVALID', /^cells \(AGON_CELLS\) is "0"/],
    ['too many cells', [{ cells: 257 }], 'CONFIG.INVALID', /^cells/],
    ['a rake below five percent', [{ rakeBps: 499 }], 'CONFIG.INVALID', /^rakeBps/],
    ['a rake above fifteen percent', [{ rakeBps: 1501 }], 'CONFIG.INVALID', /^rakeBps/],
    ['an unknown log level', [{ logLevel: 'loud' }], 'CONFIG.INVALID', /^logLevel \(AGON_LOG_LEVEL\) is "loud"/],
    ['a misspelt variable', [{}, { AGON_PROT: '81' }], 'CONFIG.UNKNOWN', /AGON_PROT is not a setting.*AGON_PORT/],
  ])('refuses %s by name', (_what, args, code, message) => {
    expect(() => parseConfig(...args)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });

  it('takes the address of a store, and shows its key to nobody', () => {
    const config = parseConfig({}, { AGON_STORE: 'esdb://ada:hidden@db:2113?tls=true' });
    expect(config.storeUrl?.reveal()).toBe('esdb://ada:hidden@db:2113?tls=true');
    expect(JSON.stringify(config) + inspect(config)).not.toMatch(/hidden/);
    const wrong = () => parseConfig({}, { AGON_STORE: 'http://ada:hidden@db' });
    expect(wrong).toThrow(/storeUrl \(AGON_STORE\) is not usable: must start with esdb:/);
    expect(wrong).not.toThrow(/hidden/);
  });

  it('wants a certificate with its key', () => {
    expect(() => parseConfig({ eventstoreCert: 'a.crt' })).toThrow(/belong together/);
  });

  describe('of Kafka', () => {
    const user = { AGON_KAFKA_SASL: 'scram-sha-512', AGON_KAFKA_USER: 'ada', AGON_KAFKA_PASSWORD: 'hidden' };

    it('has a user, and shows the password to nobody', () => {
      const config = parseConfig({}, user);
      expect(config).toMatchObject({ kafkaSasl: 'scram-sha-512', kafkaUser: 'ada', kafkaTls: false });
      expect(config.kafkaPassword?.reveal()).toBe('hidden');
      expect(JSON.stringify(config) + inspect(config)).not.toMatch(/hidden/);
    });

    it.each([
      [{ AGON_KAFKA_CA: 'ca.crt' }, true],
      [{ AGON_KAFKA_CERT: 'me.crt', AGON_KAFKA_KEY: 'me.key' }, true],
      [{ AGON_KAFKA_TLS: 'on' }, true],
      [{ AGON_KAFKA_TLS: 'off' }, false],
    ])('takes %j to mean TLS or not: %j', (env, kafkaTls) => {
      expect(parseConfig({}, env)).toMatchObject({ kafkaTls });
    });

    it.each([
      [{ ...user, AGON_KAFKA_SASL: '' }, /belong together/],
      [{ ...user, AGON_KAFKA_USER: undefined }, /belong together/],
      [{ ...user, AGON_KAFKA_PASSWORD: '' }, /belong together/],
      [
        { ...user, AGON_KAFKA_PASSWORD: 'hid\nden' },
        /kafkaPassword \(AGON_KAFKA_PASSWORD\) is not usable: must be one line/,
      ],
      [{ ...user, AGON_KAFKA_SASL: 'gssapi' }, /must be plain, scram-sha-256 or scram-sha-512/],
      [{ AGON_KAFKA_CERT: 'me.crt' }, /AGON_KAFKA_CERT and AGON_KAFKA_KEY belong together/],
      [{ AGON_KAFKA_TLS: 'off', AGON_KAFKA_CA: 'ca.crt' }, /AGON_KAFKA_TLS is off/],
    ])('refuses what cannot be meant: %#', (env, says) => {
      expect(() => parseConfig({}, env)).toThrow(says);
      expect(() => parseConfig({}, env)).not.toThrow(/hid/);
    });
  });

  it('cannot be changed afterwards', () => {
    expect(Object.isFrozen(parseConfig())).toBe(true);
  });

  describe('of payments', () => {
    const keys = { STRIPE_SECRET_KEY: 'sk_test_abc', STRIPE_WEBHOOK_SECRET: 'whsec_abc,whsec_def' };

    it('has the keys, and shows them to nobody who only looks', () => {
      const config = parseConfig({}, keys);
      expect(config.stripeSecretKey?.reveal()).toBe('sk_test_abc');
      for (const shown of [JSON.stringify(config), inspect(config, { depth: 9 }), `${config.stripeWebhookSecret}`]) {
        expect(shown).not.toMatch(/abc/);
      }
    });

    it.each([
      [{ ...keys, STRIPE_WEBHOOK_SECRET: undefined }, /STRIPE_WEBHOOK_SECRET is missing/],
      [{ ...keys, STRIPE_SECRET_KEY: undefined }, /STRIPE_SECRET_KEY is missing/],
      [{ ...keys, STRIPE_SECRET_KEY: 'pk_test_abc' }, /STRIPE_SECRET_KEY\) is not usable: must start with sk_test_/],
      [{ ...keys, STRIPE_WEBHOOK_SECRET: 'abc' }, /must start with whsec_/],
      [{ ...keys, AGON_STRIPE_URL: 'http://example.org' }, /must be https, or http on this machine/],
    ])('refuses what cannot work, without showing it: %#', (env, says) => {
      expect(() => parseConfig({}, env)).toThrow(says);
      expect(() => parseConfig({}, env)).not.toThrow(/abc/);
    });
  });
});
