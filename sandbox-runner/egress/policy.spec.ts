import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Grant, policyFrom, readPolicy } from './policy.js';
import { addressOf, isReachable, ruleFor, wantedOf } from './target.js';

const grantOf = (...allow: object[]): Grant => policyFrom({ agents: { a: { allow } } }, '.', {}).agents.a as Grant;
const coded = (code: string) => expect.objectContaining({ code });

describe('a policy', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agon-policy-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('says what is wrong with it, and takes no field that it does not know', () => {
    for (const [policy, why] of [
      [{}, /agents/],
      [{ agents: { a: { allow: [] } } }, /agents\.a\.allow/],
      [{ agents: {}, agent: {} }, /Unrecognized key: "agent"/],
      [{ agents: { a: { allow: [{ host: 'x.test', method: 'GET' }] } } }, /agents\.a\.allow\.0: .*"method"/],
      [{ agents: { a: { allow: [{ host: 'X.test' }] } } }, /no host name in lower case/],
      [{ agents: { a: { allow: [{ host: '*' }] } } }, /no host name/],
      [{ agents: { a: { allow: [{ host: 'http://x.test' }] } } }, /no host name/],
      [{ agents: { a: { allow: [{ host: '10.0.0.1' }] } } }, /only names can be allowed/],
      [{ agents: { a: { allow: [{ host: '0x7f.1' }] } } }, /only names can be allowed/],
      [{ agents: { a: { allow: [{ host: 'x.test', port: 0 }] } } }, /port/],
      [{ agents: { a: { allow: [{ host: 'x.test', headers: { a: 'b' } }] } } }, /"upgrade": "https"/],
      [
        { agents: { a: { allow: [{ host: 'x.test', upgrade: 'https', headers: { Host: 'b' } }] } } },
        /set by the proxy/,
      ],
      [{ agents: { a: { allow: [{ host: 'x.test' }], caps: { requests: 0 } } } }, /requests/],
      [{ agents: {}, limits: { wallMs: 1 } }, /wallMs/],
    ] as const) {
      expect(() => policyFrom(policy, '.', {}), JSON.stringify(policy)).toThrow(why);
    }
    expect(() => policyFrom({}, '.', {})).toThrow(coded('EGRESS.BAD_POLICY'));
  });

  it('finds its secrets in the environment, or in files that are closed to others', () => {
    const withSecret = (source: object, env = {}) =>
      policyFrom(
        {
          agents: {
            a: { allow: [{ host: 'x.test', upgrade: 'https', headers: { Authorization: '{{secret:KEY}}' } }] },
          },
          secrets: { KEY: source },
        },
        folder,
        env,
      ).secrets.get('KEY');
    expect(withSecret({ env: 'MY_KEY' }, { MY_KEY: 'long-enough' })).toBe('long-enough');
    expect(() => withSecret({ env: 'MY_KEY' })).toThrow(coded('EGRESS.NO_SECRET'));
    expect(() => withSecret({ env: 'MY_KEY' }, { MY_KEY: 'short' })).toThrow(coded('EGRESS.NO_SECRET'));
    expect(() => withSecret({ env: 'MY_KEY' }, { MY_KEY: 'two\r\nlines-of-it' })).toThrow(coded('EGRESS.NO_SECRET'));
    const file = join(folder, 'key');
    writeFileSync(file, 'from-a-file\n', { mode: 0o600 });
    expect(withSecret({ file: 'key' })).toBe('from-a-file');
    symlinkSync(file, join(folder, 'link'));
    expect(() => withSecret({ file: 'link' })).toThrow(coded('EGRESS.OPEN_SECRET'));
    chmodSync(file, 0o644);
    expect(() => withSecret({ file: 'key' })).toThrow(coded('EGRESS.OPEN_SECRET'));
    const unknown = {
      agents: { a: { allow: [{ host: 'x.test', upgrade: 'https', headers: { X: '{{secret:NONE}}' } }] } },
    };
    expect(() => policyFrom(unknown, folder, {})).toThrow(/secret NONE/);
  });

  it('comes from a file, or from a list of hosts for the agents that are named', () => {
    const file = join(folder, 'policy.json');
    writeFileSync(file, JSON.stringify({ agents: { 'ada.mine': { allow: [{ host: 'x.test' }] } } }));
    expect(readPolicy(file, [], {}).agents['ada.mine']?.allow).toEqual([{ host: 'x.test', port: 443 }]);
    writeFileSync(file, '{');
    expect(() => readPolicy(file, [], {})).toThrow(coded('EGRESS.BAD_POLICY'));
    expect(() => readPolicy(join(folder, 'none.json'), [], {})).toThrow(/cannot be read/);
    const { agents } = readPolicy('x.test, *.y.test:8443', ['mine.py'], {});
    expect(agents['mine.py']?.allow).toEqual([
      { host: 'x.test', port: 443 },
      { host: '*.y.test', port: 8443 },
    ]);
    expect(() => readPolicy('x.test:http', ['mine.py'], {})).toThrow(/port/);
    expect(() => readPolicy('x.test', [], {})).toThrow(/ends in \.json/);
  });
});

describe('a request', () => {
  const grant = grantOf(
    { host: 'api.test', port: 80, methods: ['GET'], paths: ['/v1'] },
    { host: '*.wide.test' },
    { host: 'safe.test', port: 8443, upgrade: 'https' },
  );
  const verdict = (method: string, target: string): string => {
    try {
      const rule = ruleFor(grant, wantedOf(method, target));
      return `${rule.host}:${rule.port}`;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  it.each([
    ['GET', 'http://api.test/v1', 'api.test:80'],
    ['GET', 'http://API.test./v1/chat?q=1', 'api.test:80'],
    ['POST', 'http://api.test/v1', 'EGRESS.METHOD_REFUSED'],
    ['GET', 'http://api.test/v10', 'EGRESS.PATH_REFUSED'],
    ['GET', 'http://api.test/v1/../admin', 'EGRESS.PATH_REFUSED'],
    ['GET', 'http://api.test/v1/%2e%2e/admin', 'EGRESS.PATH_REFUSED'],
    ['GET', 'http://api.test/v1/..%2fadmin', 'EGRESS.PATH_REFUSED'],
    ['GET', 'http://api.test/v1//admin', 'EGRESS.PATH_REFUSED'],
    ['GET', 'http://api.test:81/v1', 'EGRESS.PORT_REFUSED'],
    ['GET', 'https://api.test:80/v1', 'EGRESS.SCHEME_REFUSED'],
    ['CONNECT', 'api.test:80', 'EGRESS.TUNNEL_REFUSED'],
    ['CONNECT', 'a.wide.test:443', '*.wide.test:443'],
    ['CONNECT', 'a.b.wide.test:443', '*.wide.test:443'],
    ['CONNECT', 'wide.test:443', 'EGRESS.HOST_REFUSED'],
    ['CONNECT', 'notwide.test:443', 'EGRESS.HOST_REFUSED'],
    ['CONNECT', 'a.wide.test:80', 'EGRESS.PORT_REFUSED'],
    ['GET', 'http://safe.test/', 'safe.test:8443'],
    ['GET', 'http://safe.test:8443/', 'safe.test:8443'],
    ['GET', 'https://safe.test:8443/', 'safe.test:8443'],
    ['GET', 'http://safe.test:8080/', 'EGRESS.PORT_REFUSED'],
    ['CONNECT', 'safe.test:8443', 'EGRESS.TUNNEL_REFUSED'],
    ['GET', 'http://api.test.evil.test/v1', 'EGRESS.HOST_REFUSED'],
    ['GET', 'http://127.0.0.1/v1', 'EGRESS.ADDRESS_REFUSED'],
    ['GET', 'http://2130706433/v1', 'EGRESS.ADDRESS_REFUSED'],
    ['GET', 'http://0x7f.1/v1', 'EGRESS.ADDRESS_REFUSED'],
    ['GET', 'http://[::1]/v1', 'EGRESS.ADDRESS_REFUSED'],
    ['CONNECT', '[::ffff:127.0.0.1]:443', 'EGRESS.ADDRESS_REFUSED'],
    ['CONNECT', '169.254.169.254:80', 'EGRESS.ADDRESS_REFUSED'],
    ['GET', '/v1', 'EGRESS.BAD_REQUEST'],
    ['GET', 'ftp://api.test/v1', 'EGRESS.BAD_REQUEST'],
    ['GET', 'http://user@api.test/v1', 'EGRESS.BAD_REQUEST'],
    ['GET', 'http://api.test\\@evil.test/v1', 'EGRESS.BAD_REQUEST'],
    ['CONNECT', 'api.test', 'EGRESS.BAD_REQUEST'],
    ['CONNECT', 'x@api.test:443', 'EGRESS.BAD_REQUEST'],
    ['CONNECT', 'api.test:443/v1', 'EGRESS.BAD_REQUEST'],
    ['OPTIONS', '*', 'EGRESS.BAD_REQUEST'],
  ])('%s %s: %s', (method, target, expected) => {
    expect(verdict(method, target)).toBe(expected);
  });
});

describe('an address', () => {
  const inside = [
    '127.0.0.1',
    '127.255.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '::1',
    'fd12::1',
  ];
  const never = [
    '0.0.0.0',
    '100.64.0.1',
    '100.100.100.200',
    '169.254.169.254',
    '168.63.129.16',
    '192.0.0.1',
    '198.18.0.1',
    '224.0.0.1',
    '239.1.1.1',
    '255.255.255.255',
    '240.0.0.1',
    '192.0.2.1',
    '203.0.113.1',
    '::',
    'fe80::1',
    'ff02::1',
    '::ffff:169.254.169.254',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '2001::1',
    '2001:db8::1',
    'fd00:ec2::254',
    'localhost',
    '',
  ];

  it('of the public internet is reachable', () => {
    for (const address of ['8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111']) {
      expect(isReachable(address, false), address).toBe(true);
    }
  });

  it("of one's own network is so only where that was allowed", () => {
    for (const address of inside) {
      expect([address, isReachable(address, false), isReachable(address, true)]).toEqual([address, false, true]);
    }
    expect(isReachable('::ffff:127.0.0.1', false)).toBe(false);
  });

  it('of metadata services, links, groups and translations never is', () => {
    for (const address of never) {
      expect([address, isReachable(address, false), isReachable(address, true)]).toEqual([address, false, false]);
    }
  });

  it('is refused together with its neighbours: a name with one foot inside is not reached at all', async () => {
    const mixed = async () => [
      { address: '8.8.8.8', family: 4 },
      { address: '10.0.0.1', family: 4 },
    ];
    await expect(addressOf('x.test', false, mixed)).rejects.toMatchObject({ code: 'EGRESS.PRIVATE_ADDRESS' });
    await expect(addressOf('x.test', false, async () => [])).rejects.toMatchObject({ code: 'EGRESS.NOT_RESOLVED' });
    const failing = () => Promise.reject(new Error('no such name'));
    await expect(addressOf('x.test', false, failing)).rejects.toMatchObject({ code: 'EGRESS.NOT_RESOLVED' });
  });
});
