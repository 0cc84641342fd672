import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Cells } from '../cells.js';
import { ProcessDriver, whyNoProcessSandboxes } from '../drivers/process.js';
import { executable, type Language } from '../drivers/runtimes.js';
import { WasmDriver } from '../drivers/wasm.js';
import { limitsFrom } from '../limits.js';
import { codeDigest, type MatchAgent, type Progress } from '../protocol.js';
import { certificateFile, here, secret, type Upstream, upstreamOf } from './egress.contract.js';
import { Egress } from './egress.js';
import type { EgressEntry } from './log.js';
import { policyFrom } from './policy.js';

const why = whyNoProcessSandboxes();

/** Agents that fetch some addresses when they start, print what they got, and then play as well as they can. */
const fetching: Record<Language, (urls: readonly string[], more?: string) => string> = {
  python: (urls, more = '') => `import json, os, urllib.error, urllib.request
def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()]
    except Exception as error:
        return [0, repr(error)]
def init(config):
    print(json.dumps([fetch(url) for url in ${JSON.stringify(urls)}]))
${more.replace(/^/gm, '    ')}
def act(o):
    return o["legal"][0]
`,
  node: (urls, more = '') => `
const https = require('node:https');
const http = require('node:http');
async function fetched(url) {
  try {
    const answer = await fetch(url);
    return [answer.status, await answer.text()];
  } catch (error) {
    return [0, String(error.cause ?? error)];
  }
}
const got = (url) => new Promise((resolve) => {
  (url.startsWith('https') ? https : http).get(url, (answer) => {
    let text = '';
    answer.on('data', (chunk) => { text += chunk; });
    answer.on('end', () => resolve([answer.statusCode, text]));
  }).on('error', (error) => resolve([0, String(error)]));
});
async function init(config) {
  const all = [];
  for (const url of ${JSON.stringify(urls)}) {
    all.push(await fetched(url));
    const other = await got(url);
    if (JSON.stringify(other) !== JSON.stringify(all.at(-1)) && other[0] !== 0) throw new Error(JSON.stringify(other));
  }
  console.log(JSON.stringify(all));
  ${more}
}
function act(o) { return o.legal[0]; }
`,
};

const languages: readonly Language[] = ['python', 'node'];
const agent = (runtime: Language, agentId: string, urls: readonly string[], more?: string): MatchAgent => {
  const source = fetching[runtime](urls, more);
  return { source, codeDigest: codeDigest(source), runtime, agentId };
};
const quiet: MatchAgent = (() => {
  const source = 'const act = ({ legal }) => legal.at(-1);';
  return { source, codeDigest: codeDigest(source), runtime: 'javascript', agentId: 'quiet' };
})();

describe.skipIf(why !== undefined)(`egress from real sandboxes${why ? ` (${why})` : ''}`, () => {
  let plain: Upstream;
  let secure: Upstream;
  let folder: string;
  const cells: Cells[] = [];
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'agon-egress-spec-'));
    plain = await upstreamOf(false, (request, response) => response.end(`plain ${request.url}`));
    secure = await upstreamOf(true, (request, response) =>
      response.end(`secure ${request.headers.authorization ?? '-'}`),
    );
  });
  afterEach(async () => {
    for (const each of cells.splice(0)) await each.close({ kill: true });
  });
  afterAll(() => {
    plain.close();
    secure.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Plays one match, and returns its record, what each seat printed, and what was logged. */
  async function play(agents: readonly MatchAgent[], policy?: object) {
    const entries: EgressEntry[] = [];
    const endpoints = new Set<string>();
    const logFile = join(folder, 'egress.log');
    rmSync(logFile, { force: true });
    const whole = {
      secrets: { KEY: { env: 'KEY' } },
      authorities: [certificateFile],
      logFile,
      limits: { stallMs: 20_000, initMs: 20_000, turnMs: 2_000, memoryBytes: 128 * 1024 * 1024 },
    };
    const egress =
      policy &&
      new Egress(policyFrom({ ...whole, ...policy }, '.', { KEY: secret }), {
        resolve: here,
        onEntry: (e) => entries.push(e),
      });
    if (egress) {
      const open = egress.open.bind(egress);
      egress.open = async (...args) => {
        const opened = await open(...args);
        endpoints.add(opened.endpoint.socket);
        return opened;
      };
    }
    const pool = new Cells({ size: 1 }, egress);
    cells.push(pool);
    const printed: string[] = agents.map(() => '');
    const onProgress = (progress: Progress) => {
      if (progress.kind === 'log') printed[progress.seat] += progress.text;
    };
    const job = { matchId: 'match-1', game: 'tic-tac-toe', seed: 'seed', agents };
    const record = await pool.play(job, onProgress);
    const answers = (seat: number): [number, string][] =>
      JSON.parse(/^\[.*\]$/m.exec(printed[seat] ?? '')?.[0] ?? 'null');
    const log = existsSync(logFile) ? readFileSync(logFile, 'utf8') : '';
    return { record, printed, answers, entries, endpoints, log };
  }

  it.each(languages)('is off by default: %s has no socket to try with', async (language) => {
    const { record, answers } = await play([agent(language, 'a', [`http://upstream.test:${plain.port}/`]), quiet]);
    expect(answers(0)[0]?.[0]).toBe(0);
    expect(record).not.toHaveProperty('deterministic');
    expect(record.usage[0]).not.toHaveProperty('egress');
    expect(record.outcome.seatAtFault).toBeNull();
  });

  it('lets each seat reach what it was granted, and not what the other was', async () => {
    const urls = [
      `http://upstream.test:${plain.port}/v1?q=1`,
      `https://upstream.test:${secure.port}/`,
      'http://169.254.169.254/',
    ];
    const seats = [agent('python', 'ada.py', urls), agent('node', 'bob.js', urls)];
    const { record, answers, entries, printed, endpoints, log } = await play(seats, {
      agents: {
        'ada.py': { allow: [{ host: 'upstream.test', port: plain.port, allowPrivate: true }] },
        'bob.js': { allow: [{ host: '*.test', port: secure.port, allowPrivate: true }] },
      },
    });
    expect(record.outcome, JSON.stringify(record.outcome)).toMatchObject({ seatAtFault: null });
    expect(answers(0)).toMatchObject([
      [200, 'plain /v1?q=1'],
      [0, expect.stringContaining('403')],
      [403, expect.stringContaining('ADDRESS_REFUSED')],
    ]);
    expect(answers(1)).toMatchObject([
      [403, expect.stringContaining('PORT_REFUSED')],
      [200, 'secure -'],
      [403, expect.stringContaining('ADDRESS_REFUSED')],
    ]);
    expect(record.deterministic).toBe(false);
    const sum = (seat: number, port: number, key: 'bytesIn' | 'bytesOut') =>
      entries.filter((each) => each.seat === seat && each.port === port).reduce((total, each) => total + each[key], 0);
    const inOrder = <Place extends { host: string; port: number }>(places: readonly Place[]) =>
      places.toSorted((a, b) => (`${a.host}:${a.port}` < `${b.host}:${b.port}` ? -1 : 1));
    expect(record.usage[0]?.egress).toEqual(
      inOrder([
        {
          host: 'upstream.test',
          port: plain.port,
          requests: 1,
          refused: 0,
          bytesIn: sum(0, plain.port, 'bytesIn'),
          bytesOut: sum(0, plain.port, 'bytesOut'),
        },
        { host: 'upstream.test', port: secure.port, requests: 1, refused: 1, bytesIn: 0, bytesOut: 0 },
        { host: '169.254.169.254', port: 80, requests: 1, refused: 1, bytesIn: 0, bytesOut: 0 },
      ]),
    );
    expect(sum(0, plain.port, 'bytesIn')).toBeGreaterThan(100);
    // Node asked for everything twice, by fetch and by its modules.
    expect(record.usage[1]?.egress).toMatchObject(
      inOrder([
        { host: 'upstream.test', port: plain.port, requests: 2, refused: 2, bytesIn: 0, bytesOut: 0 },
        { host: 'upstream.test', port: secure.port, requests: 2, refused: 0, bytesIn: sum(1, secure.port, 'bytesIn') },
        { host: '169.254.169.254', port: 80, requests: 2, refused: 2 },
      ]),
    );
    expect(
      entries.every(({ matchId, seat, agentId }) => matchId === 'match-1' && agentId === ['ada.py', 'bob.js'][seat]),
    ).toBe(true);
    expect(printed[0]).toContain(`egress GET upstream.test:${plain.port}/v1 allowed 200, `);
    expect(
      log
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(entries);
    // The proxies end with the match.
    expect(endpoints.size).toBe(2);
    for (const socket of endpoints) expect(existsSync(socket)).toBe(false);
  });

  it.each(languages)('gives a secret to the upstream, and no sight of it to %s', async (language) => {
    const look = {
      python: `seen = [json.dumps(dict(os.environ)), str(os.path.exists("/proc"))]
for folder, _, files in os.walk("/"):
    for file in files:
        path = os.path.join(folder, file)
        if folder.startswith(("/tmp", "/egress")) and os.path.isfile(path):
            seen.append(path + open(path, errors="replace").read())
print("SEEN " + json.dumps(seen)[:100] + " " + str("very-secret" in json.dumps(seen)))`,
      node: `const fs = require('node:fs');
const seen = [JSON.stringify(process.env), String(fs.existsSync('/proc'))];
for (const folder of ['/tmp', '/egress']) {
  for (const file of fs.readdirSync(folder)) {
    const path = folder + '/' + file;
    if (fs.statSync(path).isFile()) seen.push(path + fs.readFileSync(path));
  }
}
console.log('SEEN ' + JSON.stringify(seen).slice(0, 100) + ' ' + (JSON.stringify(seen).includes('very-secret') ? 'True' : 'False'));`,
    }[language];
    const headers = { Authorization: 'Bearer {{secret:KEY}}' };
    const before = secure.requests.length;
    const { answers, printed, record, entries, log } = await play(
      [agent(language, 'a', ['http://upstream.test/'], look), quiet],
      {
        agents: {
          a: { allow: [{ host: 'upstream.test', port: secure.port, upgrade: 'https', headers, allowPrivate: true }] },
        },
      },
    );
    expect(secure.requests.slice(before).map((request) => request.headers.authorization)).toContain(`Bearer ${secret}`);
    expect(answers(0)).toEqual([[200, `secure Bearer ${'*'.repeat(secret.length)}`]]);
    expect(printed[0]).toMatch(/^SEEN .* False$/m);
    for (const place of [record, printed, entries, log]) expect(JSON.stringify(place)).not.toContain(secret);
  });

  it('cuts an agent off at its cap, and goes on with the match', async () => {
    const urls = Array.from({ length: 40 }, () => `http://upstream.test:${plain.port}/${'x'.repeat(600)}`);
    const { record, answers } = await play([agent('python', 'a', urls), quiet], {
      agents: {
        a: { allow: [{ host: 'upstream.test', port: plain.port, allowPrivate: true }], caps: { bytesOut: 4_096 } },
      },
    });
    expect(answers(0)[0]?.[0]).toBe(200);
    expect(answers(0).at(-1)).toEqual([413, expect.stringContaining('EGRESS.BYTES_OUT')]);
    expect(record.outcome.seatAtFault).toBeNull();
    expect(record.usage[0]?.egress?.[0]?.bytesOut).toBeLessThanOrEqual(4_096 + 1_024);
  });

  it('is refused to those who are deterministic, and to executables that have no relay', async () => {
    const policy = { agents: { quiet: { allow: [{ host: 'upstream.test' }] } } };
    await expect(play([quiet, quiet], policy)).rejects.toMatchObject({
      code: 'EGRESS.NOT_WITH_DRIVER',
      message: expect.stringContaining('deterministic'),
    });
    const endpoint = { socket: join(folder, 'none.sock'), authorities: certificateFile };
    const options = { seed: 's', seat: 0, limits: limitsFrom(), endpoint };
    await expect(new WasmDriver().load('', options)).rejects.toMatchObject({ code: 'EGRESS.NOT_WITH_DRIVER' });
    const script = 'echo ready >&4; while read -r token verb body <&3; do echo "$token Rnull" >&4; done';
    const shell = await ProcessDriver.open(await executable('shell', '1', ['/bin/sh', '-c', script]));
    await expect(shell.load('', options)).rejects.toMatchObject({ code: 'EGRESS.NOT_WITH_DRIVER' });
    await shell.close();
    expect(dirname(endpoint.socket)).toBe(folder);
  });
});
