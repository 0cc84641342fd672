import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { contexts } from '../../services/index.js';
import { type Arena, arenaOfSpec } from '../engines/arena.contract.js';

const here = (...path: string[]) => join(import.meta.dirname, ...path);
const textOf = (...path: string[]) => readFileSync(here(...path), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'agon-grafana-'));

let arena: Arena;
let url: string;
let headers: Record<string, string>;
/** What the running gateway exposes: the labels of each series' name, with the values that were seen. */
let exposed: Map<string, Map<string, Set<string>>>;
let metrics: string;

const ask = async (query: string) => {
  const body = JSON.stringify({ query });
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body });
  return ((await response.json()) as { data: Record<string, { id: string }> }).data;
};

beforeAll(async () => {
  const flags = { dataDir: folder, playPort: 0, grpcPort: 0 };
  arena = await arenaOfSpec(flags, { sandbox: { port: 0 } });
  url = await arena.listen();
  const token = readFileSync(join(folder, 'operator.token'), 'utf8');
  headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  await someOfEverything();
  metrics = await (await fetch(`${url}/metrics`)).text();
  exposed = seriesIn(metrics);
});

afterAll(async () => {
  await arena?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A match, a payment, a spectator, and mistakes: each metric has something to say. */
async function someOfEverything(): Promise<void> {
  for (const owner of ['ada', 'bob']) {
    await ask(`mutation { registerOwner(accountId: "${owner}", displayName: "${owner}") { id } }`);
    await ask(`mutation { grantCredits(accountId: "${owner}", amountCents: "1000") { id } }`);
    const source = '"function act(o) { return o.legal[0] }"';
    await ask(
      `mutation { submitAgent(ownerId: "${owner}", name: "bot", games: ["tic-tac-toe"], source: ${source}) { id } }`,
    );
  }
  await ask('mutation { deposit(accountId: "ada", amountCents: "5000") { paymentId } }');
  const match = 'game: "tic-tac-toe", agents: ["ada.bot", "bob.bot"], stakeCents: "10"';
  const { id = '' } = (await ask(`mutation { proposeMatch(${match}) { id } }`)).proposeMatch ?? {};
  await (await fetch(`${url}/v1/matches/${id}/live`)).text();
  await arena.settled();
  await ask('{ nothing }');
  await fetch(`${url}/v1/matches/none/live`);
}

/** The text format of Prometheus, as far as names and labels go. */
function seriesIn(text: string): Map<string, Map<string, Set<string>>> {
  const found = new Map<string, Map<string, Set<string>>>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = found.get(name) ?? new Map<string, Set<string>>();
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      known.set(label, (known.get(label) ?? new Set()).add(value));
    }
    found.set(name, known);
  }
  return found;
}

/** Prometheus's own: it adds these labels to all that it scrapes, and this series for each that it scrapes. */
const SCRAPED = ['job', 'instance'];
const OWN_SERIES = ['up'];
/** Labels with few values that are known beforehand: a value that never comes would make a chart that is always empty. */
const VALUES: Readonly<Record<string, ReadonlySet<string>>> = {
  door: new Set(['http', 'graphql', 'grpc']),
  outcome: new Set(['ok', 'refused', 'failed', 'appended', 'unchanged', 'repeated']),
  what: new Set(['address', 'actor']),
  job: new Set(['agon']),
  type: new Set([
    ...contexts.flatMap(({ events }) => Object.keys(events.specs)),
    ...contexts.flatMap(({ commands }) => commands.map(({ spec }) => spec.type)),
  ]),
};

/** What is wrong with an expression: its grammar, or a metric, label or value that is not there. */
function faultsOf(expression: string): string[] {
  // Grafana puts these in before Prometheus sees them.
  const text = expression.replaceAll('$__rate_interval', '5m').replace(/\$\w+/g, '.*');
  const faults: string[] = [];
  const at = ({ from, to }: { from: number; to: number }) => text.slice(from, to);
  const names: string[] = [];
  parser.parse(text).iterate({
    enter: ({ type, node }) => {
      if (type.isError) faults.push(`does not parse at ${node.from}: ${text}`);
      if (type.name !== 'VectorSelector') return;
      const name = at(node.getChild('Identifier') ?? node);
      names.push(name);
      if (!exposed.has(name) && !OWN_SERIES.includes(name)) faults.push(`there is no metric ${name}`);
      for (const matcher of node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []) {
        faults.push(...faultsOfMatcher(name, matcher, at));
      }
    },
  });
  parser.parse(text).iterate({
    enter: ({ type, node }) => {
      if (type.name !== 'GroupingLabels') return;
      for (const label of node.getChildren('LabelName').map(at)) {
        if (!names.some((name) => hasLabel(name, label))) faults.push(`${names.join(', ')} has no label ${label}`);
      }
    },
  });
  return faults;
}

const hasLabel = (name: string, label: string) => SCRAPED.includes(label) || exposed.get(name)?.has(label) === true;

function faultsOfMatcher(name: string, matcher: SyntaxNode, at: (node: SyntaxNode) => string): string[] {
  const [label, value] = [matcher.getChild('LabelName'), matcher.getChild('StringLiteral')].map((node) => {
    return node ? at(node) : '';
  });
  if (!label || !hasLabel(name, label)) return [`${name} has no label ${label}`];
  const values = (value ?? '').slice(1, -1).split('|');
  const known = VALUES[label];
  if (!known || values.includes('.*')) return [];
  return values.filter((each) => !known.has(each)).map((each) => `${label} is never ${each}`);
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly datasource: { readonly type: string; readonly uid: string };
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly fieldConfig: { readonly defaults: object; readonly overrides: readonly object[] };
  readonly options: object;
  readonly targets: readonly { readonly refId: string; readonly expr: string; readonly datasource: { uid: string } }[];
}
interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly version: number;
  readonly tags: readonly string[];
  readonly time: { readonly from: string; readonly to: string };
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition: string }[] };
  readonly panels: readonly Panel[];
}
interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}

const dashboards = readdirSync(here('dashboards')).map((file) => {
  return [file, JSON.parse(textOf('dashboards', file)) as Dashboard] as const;
});
const rules = (parse(textOf('alerts', 'agon.rules.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const source = parse(textOf('provisioning', 'datasources', 'prometheus.yml')) as {
  apiVersion: number;
  datasources: { uid: string; type: string; url: string; access: string }[];
};

/** What Grafana needs of a dashboard to show it, and what keeps panels from lying on each other. */
function faultsOfDashboard({ uid, title, schemaVersion, time, panels, tags }: Dashboard): string[] {
  const faults: string[] = [];
  const want = (fine: boolean, what: string) => void (fine || faults.push(what));
  want(/^[a-zA-Z0-9_-]{1,40}$/.test(uid), 'a uid');
  want(title.length > 0 && tags.includes('agon'), 'a title and the tag');
  want(Number.isInteger(schemaVersion) && schemaVersion >= 36, 'a schema that Grafana still reads');
  want(time.from.startsWith('now-') && time.to === 'now', 'a time range');
  want(new Set(panels.map(({ id }) => id)).size === panels.length, 'ids of their own for panels');
  const taken = new Set<string>();
  for (const panel of panels) {
    const { gridPos, datasource, targets, fieldConfig, options } = panel;
    want(['timeseries', 'stat'].includes(panel.type) && panel.title.length > 0, `a type and a title in ${panel.id}`);
    want(datasource.uid === source.datasources[0]?.uid && datasource.type === 'prometheus', `a source in ${panel.id}`);
    want(Array.isArray(fieldConfig.overrides) && typeof options === 'object', `fields and options in ${panel.id}`);
    want(targets.length > 0 && new Set(targets.map(({ refId }) => refId)).size === targets.length, 'targets');
    want(gridPos.x + gridPos.w <= 24 && gridPos.w > 0 && gridPos.h > 0, `a place in the grid for ${panel.id}`);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        want(!taken.has(`${x} ${y}`), `a place of its own for ${panel.id}`);
        taken.add(`${x} ${y}`);
      }
    }
  }
  return faults;
}

describe('dashboards', () => {
  it('are there for everything that was asked for, each under its own uid', () => {
    const names = ['arena.json', 'gateway.json', 'money.json', 'overview.json', 'projections.json', 'sandbox.json'];
    expect(dashboards.map(([file]) => file).sort()).toEqual(names);
    expect(new Set(dashboards.map(([, { uid }]) => uid)).size).toBe(names.length);
  });

  it.each(dashboards)('%s has what Grafana needs', (_file, dashboard) => {
    expect(faultsOfDashboard(dashboard)).toEqual([]);
  });

  it.each(dashboards)('%s asks for nothing that the gateway does not expose', (_file, { panels, templating }) => {
    const faults = panels.flatMap(({ title, targets }) =>
      targets.flatMap(({ expr }) => faultsOf(expr).map((fault) => `${title}: ${fault}`)),
    );
    expect(faults).toEqual([]);
    const variables = new Set(templating.list.map(({ name }) => `$${name}`));
    const used = panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => expr.match(/\$\w+/g) ?? []));
    expect(used.filter((name) => name !== '$__rate_interval' && !variables.has(name))).toEqual([]);
    for (const { definition } of templating.list) {
      const [, name = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(definition) ?? [];
      expect(hasLabel(name, label)).toBe(true);
    }
  });

  it('are found by what is provisioned, from the source that they name', () => {
    const { providers } = parse(textOf('provisioning', 'dashboards', 'agon.yml')) as {
      providers: { type: string; options: { path: string } }[];
    };
    expect(providers).toMatchObject([{ type: 'file', options: { path: '/etc/grafana/dashboards' } }]);
    expect(source).toMatchObject({ apiVersion: 1, datasources: [{ type: 'prometheus', access: 'proxy' }] });
  });
});

describe('alert rules', () => {
  it('speak of what an operator has to know', () => {
    const names = rules.map(({ alert }) => alert);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(
      expect.arrayContaining([
        'AgonReadModelBehind',
        'AgonConsumerBehind',
        'AgonFailingRequests',
        'AgonLedgerUnbalanced',
        'AgonDeadLetters',
        'AgonDiskNearlyFull',
        'AgonRunnerMissing',
      ]),
    );
  });

  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s asks for what is there, and says what to do',
    (_name, rule) => {
      expect(faultsOf(rule.expr)).toEqual([]);
      // An alert without a condition would always fire.
      expect(rule.expr).toMatch(/(==|!=|>|<) *[\d.]/);
      expect(rule.for ?? '0m').toMatch(/^\d+[smh]$/);
      expect(['info', 'warning', 'critical']).toContain(rule.labels.severity);
      expect(rule.annotations.summary.length).toBeGreaterThan(10);
      expect(rule.annotations.description.length).toBeGreaterThan(10);
      // What a summary speaks of has to be left by the expression.
      for (const [, label = ''] of rule.annotations.summary.matchAll(/\$labels\.(\w+)/g)) {
        const [, grouped] = /by \(([^)]*)\)/.exec(rule.expr) ?? [];
        if (grouped !== undefined) expect(grouped.split(', ')).toContain(label);
        else expect(hasLabel(/agon_\w+|up/.exec(rule.expr)?.[0] ?? '', label)).toBe(true);
      }
    },
  );
});

describe('these checks', () => {
  it.each([
    ['a metric that is not there', 'agon_no_such_total > 0', /no metric agon_no_such_total/],
    ['a label that is not there', 'agon_log_position{view="x"}', /no label view/],
    ['a group that is not there', 'sum by (colour) (agon_dead_letters)', /no label colour/],
    ['a value that never comes', 'agon_events_total{type="MatchSetled"}', /type is never MatchSetled/],
    ['one of several values', 'agon_commands_total{outcome=~"refused|lost"}', /outcome is never lost/],
    ['a broken expression', 'sum by (le (rate(agon_append_seconds_bucket[5m]))', /does not parse/],
    ['a bucket of what is none', 'rate(agon_commands_total_bucket[5m])', /no metric/],
  ])('find %s', (_name, expression, fault) => {
    expect(faultsOf(expression).join('; ')).toMatch(fault);
  });

  it('find a dashboard that Grafana could not show', () => {
    const [, good] = dashboards[0] as (typeof dashboards)[0];
    const [first, second] = good.panels as [Panel, Panel];
    const onTop = { ...good, panels: [first, { ...second, gridPos: first.gridPos }] };
    expect(faultsOfDashboard(onTop)).not.toEqual([]);
    expect(faultsOfDashboard({ ...good, uid: '' })).not.toEqual([]);
    const elsewhere = { ...first, datasource: { type: 'prometheus', uid: 'other' } };
    expect(faultsOfDashboard({ ...good, panels: [elsewhere] })).not.toEqual([]);
  });
});

describe('what can be counted', () => {
  it('gives medians and tails, from buckets', () => {
    for (const name of ['agon_request_seconds', 'agon_command_seconds', 'agon_append_seconds']) {
      expect([...(exposed.get(`${name}_bucket`)?.get('le') ?? [])].length).toBeGreaterThan(10);
    }
    const operations = [...(exposed.get('agon_request_seconds_count')?.get('operation') ?? [])];
    expect(operations).toEqual(expect.arrayContaining(['POST /graphql', 'mutation proposeMatch']));
    expect(operations).not.toContain('GET /v1/matches/:matchId/live');
    expect([...(exposed.get('agon_streams_ended_total')?.get('operation') ?? [])]).toEqual([
      'GET /v1/matches/:matchId/live',
    ]);
  });

  it('sees the cells, the ledger, the disk and the log', () => {
    const figure = (series: string) => Number(new RegExp(`^${series} (\\S+)$`, 'm').exec(metrics)?.[1]);
    expect(figure('agon_sandbox_cells')).toBeGreaterThanOrEqual(1);
    if (process.platform === 'linux') {
      expect(figure('agon_sandbox_memory_bytes')).toBeGreaterThan(1e6);
    }
    expect(figure('agon_log_bytes')).toBeGreaterThan(0);
    expect(figure('agon_disk_free_bytes')).toBeLessThanOrEqual(figure('agon_disk_size_bytes'));
    expect(figure('agon_ledger_sum_cents\\{currency="PLAY"\\}')).toBe(0);
    expect(figure('agon_events_total\\{type="MatchSettled"\\}')).toBe(1);
  });

  it('stays within bounds, whatever callers make up', async () => {
    const count = (text: string) => text.split('\n').filter((line) => line.startsWith('agon_')).length;
    const made = Array.from({ length: 300 }, (_, i) => `made-up-${i}`);
    await Promise.all(
      made.map(async (name, i) => {
        const word = name.replaceAll('-', '_');
        await fetch(`${url}/${name}`, { method: i % 2 ? 'GET' : 'PUT' });
        await fetch(`${url}/v1/matches/${name}/live`);
        await ask(`query ${word} { ${word}: games }`);
        await ask(`{ ${word} }`);
      }),
    );
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).not.toMatch(/made.up/);
    // The operations themselves are new; three hundred names of each are not.
    expect(count(text) - count(metrics)).toBeLessThan(200);
  });
});
