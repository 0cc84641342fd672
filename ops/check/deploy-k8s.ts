import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { packageRoot } from '../../services/runtime/package.js';
import { isPinned, PLACEHOLDER, processEnvironmentFaults, processFaults, secretFaults } from './deploy.js';

type Labels = Readonly<Record<string, string>>;

interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly { readonly key: string; readonly values?: readonly string[] }[];
}

interface Port {
  readonly name?: string;
  readonly port?: number | string;
  readonly targetPort?: number | string;
  readonly containerPort?: number;
}

type Probe = { readonly httpGet?: { readonly path: string; readonly port: string } };

interface Container {
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly envFrom?: readonly { readonly configMapRef?: { readonly name: string } }[];
  readonly ports?: readonly Port[];
  readonly securityContext?: Record<string, unknown> & {
    readonly capabilities?: { readonly drop?: readonly string[] };
  };
  readonly resources?: { readonly requests?: object; readonly limits?: object };
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
}

interface Pod {
  readonly securityContext?: { readonly runAsNonRoot?: boolean };
  readonly automountServiceAccountToken?: boolean;
  readonly nodeSelector?: Labels;
  readonly tolerations?: readonly unknown[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly persistentVolumeClaim?: { readonly claimName: string };
  }[];
  readonly containers: readonly [Container];
}

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Labels;
  readonly spec: {
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod };
    readonly selector: Selector & Labels;
    readonly podSelector: Selector;
    readonly scaleTargetRef: { readonly name: string };
    readonly metrics?: readonly {
      readonly type: string;
      readonly external?: { readonly metric: { readonly name: string } };
    }[];
    readonly ports?: readonly Port[];
    readonly egress?: readonly {
      readonly to?: readonly { readonly podSelector?: Selector }[];
      readonly ports?: readonly Port[];
    }[];
  };
}

/** What may never stand in a manifest itself. */
const SECRET = /^(AGON_STORE|DATABASE_URL|REDIS_URL|CLICKHOUSE_URL|STRIPE_\w+|\w+_PASSWORD|\w+_TOKEN)$/;
/** What a secret may hold, so that the rest of the configuration can be tried with it. */
const HELD: Labels = {
  AGON_STORE: `esdb://agon:${PLACEHOLDER}@log:2113`,
  DATABASE_URL: `postgres://agon:${PLACEHOLDER}@db:5432/agon`,
  REDIS_URL: `rediss://:${PLACEHOLDER}@redis:6379`,
  CLICKHOUSE_URL: `https://agon:${PLACEHOLDER}@clickhouse:8443`,
  STRIPE_SECRET_KEY: `sk_test_${PLACEHOLDER}`,
  STRIPE_WEBHOOK_SECRET: `whsec_${PLACEHOLDER}`,
};

export const resourcesIn = (text: string): Resource[] =>
  parseAllDocuments(text).map((document) => document.toJS() as Resource);

/** What is wrong with how the cluster is described for Kubernetes; empty when nothing. */
export function kubernetesFaults(resources: readonly Resource[], processes: 'all' | 'some' = 'all'): string[] {
  const of = (...kinds: string[]) => resources.filter(({ kind }) => kinds.includes(kind));
  const workloads = of('Deployment', 'StatefulSet');
  const commands = workloads.map(({ spec }) => spec.template.spec.containers[0].args ?? []);
  const policies = of('NetworkPolicy');
  return [
    ...of('Secret').map(({ metadata }) => `Secret ${metadata.name}: secrets are referred to, not written down`),
    ...processFaults(commands).filter((fault) => processes === 'all' || !fault.startsWith('nobody runs')),
    ...secretFaults(
      workloads.map(({ metadata: { name }, spec }) => ({
        name,
        command: spec.template.spec.containers[0].args ?? [],
        mounts: mountsIn(spec.template.spec),
      })),
    ),
    ...workloads.flatMap((workload) =>
      [
        ...containerFaults(workload.spec.template.spec, of('ConfigMap')),
        ...(of('PodDisruptionBudget').some(({ spec }) => selects(spec.selector, workload.spec.template.metadata.labels))
          ? []
          : ['it has no PodDisruptionBudget']),
        ...runnerFaults(workload, policies),
      ].map((fault) => `${workload.metadata.name}: ${fault}`),
    ),
    ...of('Service').flatMap((service) => serviceFaults(service, workloads)),
    ...of('HorizontalPodAutoscaler').flatMap((scaler) => scalerFaults(scaler, workloads)),
    ...(of('HorizontalPodAutoscaler').some(({ spec }) => spec.metrics?.some(({ type }) => type === 'External'))
      ? []
      : ['nothing grows with what waits']),
  ];
}

/** Claims and where they are mounted, as Compose writes it. */
const mountsIn = ({ volumes = [], containers: [{ volumeMounts = [] }] }: Pod): string[] =>
  volumeMounts.flatMap(({ name, mountPath }) => {
    const claim = volumes.find((volume) => volume.name === name)?.persistentVolumeClaim?.claimName;
    return claim === undefined ? [] : [`${claim}:${mountPath}`];
  });

function containerFaults(pod: Pod, maps: readonly Resource[]): string[] {
  const [container] = pod.containers;
  const { image, env = [], envFrom = [], ports = [], securityContext = {}, resources } = container;
  const literal = env.filter(({ name, value }) => SECRET.test(name) && value !== undefined);
  const named = envFrom.map(({ configMapRef }) => configMapRef?.name ?? '');
  const shared = maps.filter(({ metadata }) => named.includes(metadata.name));
  const own = env.map(({ name, value }) => [name, value ?? HELD[name] ?? PLACEHOLDER] as const);
  const environment = Object.assign({}, ...shared.map(({ data }) => data), Object.fromEntries(own));
  const safe =
    pod.securityContext?.runAsNonRoot === true &&
    pod.automountServiceAccountToken === false &&
    securityContext.readOnlyRootFilesystem === true &&
    securityContext.allowPrivilegeEscalation === false &&
    securityContext.capabilities?.drop?.includes('ALL') === true;
  const open = ports.map(({ containerPort }) => `${containerPort}`);
  const probes = [
    [container.livenessProbe, '/healthz'],
    [container.readinessProbe, '/readyz'],
  ] as const;
  return [
    ...(isPinned(image) ? [] : [`the image ${image} is not pinned by a whole version`]),
    ...literal.map(({ name }) => `${name} is written down; a secret should hold it`),
    ...(shared.length === named.length ? [] : [`not all of its ConfigMaps are there: ${named.join(', ')}`]),
    ...processEnvironmentFaults(container.args ?? [], environment, open),
    ...(safe ? [] : ['it has more rights than it needs']),
    ...(resources?.requests && resources.limits ? [] : ['it says not what it takes']),
    ...probes
      .filter(
        ([probe, path]) => probe?.httpGet?.path !== path || !ports.some(({ name }) => name === probe.httpGet?.port),
      )
      .map(([, path]) => `nobody asks ${path} of it`),
  ];
}

/** Runners have machines of their own, and reach nothing but names and the endpoint for runners. */
function runnerFaults({ spec }: Resource, policies: readonly Resource[]): string[] {
  const { metadata, spec: pod } = spec.template;
  const closed = policies.filter((policy) => selects(policy.spec.podSelector, metadata.labels));
  if (closed.length === 0) return ['no NetworkPolicy is about it'];
  if (pod.containers[0].args?.[1] !== 'runner') return [];
  const reached = closed.flatMap((policy) => policy.spec.egress ?? []);
  const to = reached.flatMap(({ to: peers = [{}] }) => peers.map(({ podSelector }) => podSelector?.matchLabels ?? {}));
  const elsewhere = to.filter((peer) => peer['app.kubernetes.io/name'] !== 'arena' && peer['k8s-app'] !== 'kube-dns');
  const ports = reached.flatMap(({ ports: open }) => open?.map(({ port }) => port) ?? ['any']);
  return [
    ...(Object.keys(pod.nodeSelector ?? {}).length > 0 && pod.tolerations?.length
      ? []
      : ['it has no machines of its own']),
    ...elsewhere.map((peer) => `it may reach ${JSON.stringify(peer)}`),
    ...ports.filter((port) => port !== 53 && port !== 4601).map((port) => `it may reach port ${port}`),
  ];
}

const selects = ({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean =>
  Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
  matchExpressions.every(({ key, values = [] }) => values.includes(labels[key] ?? ''));

function serviceFaults({ metadata, spec }: Resource, workloads: readonly Resource[]): string[] {
  const behind = workloads.filter((workload) =>
    selects({ matchLabels: spec.selector }, workload.spec.template.metadata.labels),
  );
  const open = behind.flatMap((workload) => workload.spec.template.spec.containers[0].ports ?? []);
  return (spec.ports ?? [])
    .filter(
      ({ targetPort }) => !open.some(({ name, containerPort }) => name === targetPort || containerPort === targetPort),
    )
    .map(({ targetPort }) => `Service ${metadata.name}: nobody behind it listens on ${targetPort}`);
}

function scalerFaults({ metadata, spec }: Resource, workloads: readonly Resource[]): string[] {
  const known = workloads.some((workload) => workload.metadata.name === spec.scaleTargetRef.name);
  const told = ['services', 'projections', 'sandbox-runner', 'gateway']
    .flatMap((folder) =>
      readdirSync(join(packageRoot, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
    )
    .filter((file) => /(\/(metrics|gauges|part))\.ts$/.test(file))
    .map((file) => readFileSync(join(packageRoot, file), 'utf8'))
    .join();
  const unheard = (spec.metrics ?? []).filter(
    ({ external }) => external && !told.includes(`'${external.metric.name}'`),
  );
  return [
    ...(known ? [] : [`HorizontalPodAutoscaler ${metadata.name}: there is no ${spec.scaleTargetRef.name}`]),
    ...unheard.map(({ external }) => `HorizontalPodAutoscaler ${metadata.name}: nobody tells ${external?.metric.name}`),
  ];
}
