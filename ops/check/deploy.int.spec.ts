import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { views } from '../../projections/views.js';
import { packageRoot } from '../../services/runtime/package.js';
import { composeRefusal, kubernetesRefusal, kustomized, whyNoDeployTools } from '../engines/deploy-tools.js';
import { composeFaults, filledIn, isPinned } from './deploy.js';
import { kubernetesFaults, resourcesIn } from './deploy-k8s.js';

const read = (...path: string[]) => readFileSync(join(packageRoot, ...path), 'utf8');
const missing = whyNoDeployTools();

/** A fault as somebody might make it: it has to fit, or the test would prove nothing. */
const broken = (text: string, find: string, replace: string): string => {
  if (!text.includes(find)) throw new Error(`"${find}" is not there to be broken.`);
  return text.replace(find, () => replace);
};

describe('the views', () => {
  const places = [['docker-compose.yml'], ['ops', 'k8s', 'base', 'processes.yaml'], ['ops', 'engines', 'cluster.ts']];
  it.each(places.map((path) => join(...path)))('are kept by some process of %s', (path) => {
    const lists = [...read(path).matchAll(/AGON_VIEWS(?:: |, value: )["']?([a-z]+(?:,[a-z]+)*)/g)];
    const kept = lists.flatMap(([, list = '']) => list.split(','));
    expect(kept.sort()).toEqual(views.map(({ name }) => name).sort());
  });
});

describe('the cluster for Docker', () => {
  const file = { compose: read('docker-compose.yml'), dockerfile: read('Dockerfile'), example: read('.env.example') };

  const HEALTH =
    '    healthcheck:\n      test: [CMD, redis-cli, ping]\n      interval: 5s\n      timeout: 5s\n      retries: 12\n';

  it('keeps the rules', () => {
    expect(composeFaults(file)).toEqual([]);
  });

  it.each<[string, string, string, RegExp]>([
    ['an image of any version', 'apache/kafka:4.3.1', 'apache/kafka:latest', /kafka: the image .*latest is not pinned/],
    ['an image of half a version', 'postgres:18.4-bookworm', 'postgres:18', /postgres: the image postgres:18 is not/],
    ['a target that the Dockerfile lacks', 'target: runner', 'target: sprinter', /play: the Dockerfile has no target/],
    ['a process that is forgotten', '[run, wallet]', '[run, payments]', /nobody runs wallet/],
    ['a process that is none', '[run, wallet]', '[run, purse]', /there is no process purse/],
    ['a setting that is misspelt', 'AGON_GRPC_PORT:', 'AGON_GPRC_PORT:', /arena: AGON_GPRC_PORT is no setting/],
    ['a setting that another has', 'AGON_CELLS: "1"', 'POSTGRES_USER: x', /gateway: POSTGRES_USER is no setting/],
    [
      'an engine that nobody tells of',
      '[run, relay]\n    environment: { <<: [*settings, *bus, *redis] }',
      '[run, relay]\n    environment: { <<: [*settings, *bus] }',
      /relay: it is not told REDIS_URL/,
    ],
    ['a value that is refused', 'AGON_CELLS: "1"', 'AGON_CELLS: many', /gateway: cells \(AGON_CELLS\) is "many"/],
    ['a port that nobody listens on', ':4600"]', ':4605"]', /gateway: nothing is configured to listen on port 4605/],
    ['no way to ask how it is', 'AGON_HEALTH_PORT: "4690"\n  AGON', 'AGON', /wallet: AGON_HEALTH_PORT is not set/],
    ['an address where nobody is', '@redis:6379', '@redis:6380', /REDIS_URL names redis:6380, where nobody is/],
    ['an engine that is elsewhere', 'kafka:9092\n', 'kafka-2:9092\n', /KAFKA_BROKERS names kafka-2:9092, where nobody/],
    ['a network apart', 'networks: [runners]\n', 'networks: [outside]\n', /runner: arena cannot be reached from here/],
    [
      'a network that is not there',
      'networks: [runners]\n',
      'networks: [racers]\n',
      /runner: there is no network racers/,
    ],
    ['a volume that is not there', 'log:/var/lib/agon', 'logs:/var/lib/agon', /log: there is no volume logs/],
    [
      'a file that is not there',
      'prometheus.yml:/etc',
      'prom.yml:/etc',
      /there is no \.\/ops\/compose\/prom\.yml to mount/,
    ],
    ['rights that are too many', 'cap_drop: [ALL]', 'privileged: true', /gateway: it has more rights than it needs/],
    [
      "people's data where agents are run",
      '- artifacts:/var/lib/agon/artifacts\n    depends_on: *needs',
      '- people:/var/lib/agon\n    depends_on: *needs',
      /arena: it mounts people, which is for gateways alone/,
    ],
    [
      'signing keys that nobody keeps',
      '      - people:/var/lib/agon\n',
      '',
      /gateway: what it signs with is on no volume/,
    ],
    ['a password that nobody is told of', 'REDIS_PASSWORD:?', 'REDIS_SECRET:?', /\.env\.example lacks REDIS_SECRET/],
    ['health that nobody tells', HEALTH, '', /it waits for the health of redis, which does not tell/],
  ])('does not allow %s', (_what, find, replace, fault) => {
    const faults = composeFaults({ ...file, compose: broken(file.compose, find, replace) });
    expect(faults.join('\n')).toMatch(fault);
  });

  it('pins what images are made of, and leaves every one of them to somebody without rights', () => {
    const { dockerfile } = file;
    expect(isPinned(`node:${/^ARG NODE=(\S+)$/m.exec(dockerfile)?.[1]}`)).toBe(true);
    const stages = dockerfile.split(/^FROM /m).slice(1);
    const bases = stages.map((stage) => stage.split(' ')[0]);
    expect(new Set(bases)).toEqual(new Set(['node:$'.concat('{NODE}'), 'packages', 'agon']));
    for (const stage of stages.filter((text) => / AS (agon|runner|anvil)\n/.test(text))) {
      expect(/.*^USER (\S+)$/ms.exec(stage)?.[1]).toMatch(/^(10001:10001|node)$/);
    }
    expect([...dockerfile.matchAll(/npm install .*? (\S+)$/gm)].map(([, name]) => name)).toEqual([
      '@foundry-rs/anvil@1.7.1',
    ]);
  });
});

if (missing) {
  describe('the descriptions of a deployment', () => {
    it('pass the tools of Compose and Kubernetes', (context) => context.skip(`${missing}.`));
  });
} else {
  describe("Compose's own loader", () => {
    const compose = filledIn(read('docker-compose.yml'));

    it('takes the file', () => expect(composeRefusal(compose)).toBe(''));

    it('does not take one with a word that it does not know', () => {
      expect(composeRefusal(broken(compose, 'stop_grace_period:', 'stop_grace:'))).toMatch(/stop_grace/);
    });
  });

  describe('the cluster for Kubernetes', () => {
    const base = kustomized(join(packageRoot, 'ops', 'k8s', 'base'));
    const overlay = kustomized(join(packageRoot, 'ops', 'k8s', 'overlays', 'own-log'));

    it('keeps the rules', () => {
      expect(kubernetesFaults(resourcesIn(overlay))).toEqual([]);
      expect(kubernetesFaults(resourcesIn(base), 'some')).toEqual([]);
      expect(kubernetesFaults(resourcesIn(base))).toEqual(['nobody runs eventstore']);
    });

    it("passes Kubernetes' validation", () => {
      expect(kubernetesRefusal(base)).toBe('');
      expect(kubernetesRefusal(overlay)).toBe('');
      const { items } = JSON.parse(read('ops', 'k8s', 'sandbox-job.json').replace(/\$\{NAME\}/g, 'sandbox-1')) as {
        items: object[];
      };
      const job = items.map((item) => JSON.stringify(item)).join('\n---\n');
      expect(kubernetesRefusal(job)).toBe('');
    });

    it.each([
      ['a word that it does not know', 'readinessProbe:', 'readynessProbe:', /readynessProbe/],
      ['a number that is none', 'maxReplicas: 50', 'maxReplicas: many', /maxReplicas/],
    ])('does not pass with %s', (_what, find, replace, refusal) => {
      expect(kubernetesRefusal(broken(overlay, find, replace))).toMatch(refusal);
    });

    it.each<[string, string, string, RegExp]>([
      [
        'an image of any version',
        'image: images.example/agon:0.1.0',
        'image: agon:latest',
        /agon:latest is not pinned/,
      ],
      ['a process that is forgotten', '- wallet\n        env', '- arena\n        env', /nobody runs wallet/],
      ['a setting that is misspelt', 'name: AGON_GRPC_PORT', 'name: AGON_GPRC_PORT', /AGON_GPRC_PORT is no setting/],
      [
        'a setting of the map that is misspelt',
        'AGON_KAFKA_SASL:',
        'AGON_KAFKA_SALS:',
        /AGON_KAFKA_SALS is no setting/,
      ],
      [
        'a value that is refused',
        'AGON_KAFKA_SASL: scram-sha-512',
        'AGON_KAFKA_SASL: x',
        /must be plain, scram-sha-256/,
      ],
      ['a runner without an arena', 'name: AGON_ARENA', 'name: AGON_EGRESS', /runner: it is not told AGON_ARENA/],
      ['a port that nobody listens on', 'containerPort: 4601', 'containerPort: 4603', /listen on port 4603/],
      ['a service before nobody', 'targetPort: grpc', 'targetPort: http', /Service arena: nobody behind it listens on/],
      ['a probe of another place', 'path: /readyz', 'path: /', /nobody asks \/readyz of it/],
      ['a process as root', 'runAsNonRoot: true', 'runAsNonRoot: false', /it has more rights than it needs/],
      ['no budget', 'kind: PodDisruptionBudget', 'kind: Budget', /it has no PodDisruptionBudget/],
      ['runners among the others', 'pool: agon-runners', '{}', /runner: it has no machines of its own/],
      [
        'runners that reach more',
        'port: 4601\n      protocol: TCP\n    to',
        'port: 5432\n      protocol: TCP\n    to',
        /runner: it may reach port 5432/,
      ],
      ['a measure that nobody tells', 'name: agon_queue_waiting_matches', 'name: agon_lag', /nobody tells agon_lag/],
      ['a scale of nothing', 'name: runner\n  ', 'name: sprinter\n  ', /there is no (runner|sprinter)/],
      [
        "people's data where agents are run",
        'persistentVolumeClaim:\n          claimName: agon-artifacts',
        'persistentVolumeClaim:\n          claimName: agon-people',
        /arena: it mounts agon-people, which is for gateways alone/,
      ],
      ['a secret in clear', 'kind: ServiceAccount', 'kind: Secret', /secrets are referred to, not written down/],
    ])('does not allow %s', (_what, find, replace, fault) => {
      expect(kubernetesFaults(resourcesIn(broken(overlay, find, replace))).join('\n')).toMatch(fault);
    });

    it('does not allow a password in the manifest', () => {
      const resources = resourcesIn(overlay);
      const [container] = resources.find(({ metadata: { name } }) => name === 'wallet')!.spec.template.spec.containers;
      Object.assign(container.env!.find(({ name }) => name === 'DATABASE_URL')!, {
        value: 'postgres://a:b@db:5432/agon',
      });
      expect(kubernetesFaults(resources).join('\n')).toMatch(/wallet: DATABASE_URL is written down/);
    });
  });
}
