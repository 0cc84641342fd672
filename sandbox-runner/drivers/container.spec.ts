import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { limitsFrom } from '../limits.js';
import { root } from '../paths.js';
import { ContainerDriver, containerLaunch, findEngine } from './container.js';
import type { Runtime } from './runtimes.js';
import { Sandbox } from './sandbox.js';

const image = `registry.example/python@sha256:${'a'.repeat(64)}`;
const engine = { program: '/usr/bin/docker', version: '27.0', gvisor: false };
const limits = limitsFrom({ memoryBytes: 32 * 1024 * 1024, tasks: 32, diskBytes: 1024 * 1024 });

/** What is in the image, wherever this machine has its own. */
const runtime: Runtime = {
  name: 'node',
  version: process.versions.node,
  command: [
    process.execPath,
    '--no-warnings',
    '-e',
    readFileSync(join(root, 'sandbox-runner/drivers/shims/node.js'), 'utf8'),
  ],
  environment: {},
  visible: [],
};

describe('the command line of a container', () => {
  const { args } = containerLaunch(engine, image, 'agon-1', runtime, limits);
  const given = (option: string): string | undefined => args[args.indexOf(option) + 1];

  it('holds the same limits as the other drivers', () => {
    expect(given('--memory')).toBe(String((32 + 96) * 1024 * 1024));
    expect(given('--memory-swap')).toBe(given('--memory'));
    expect([given('--pids-limit'), given('--cpus')]).toEqual(['32', '1']);
    expect(given('--tmpfs')).toBe('/tmp:rw,nosuid,nodev,size=1048576,mode=1777');
  });

  it('gives no network, no right, no writable root, and no image that was not there before', () => {
    expect([given('--network'), given('--ipc'), given('--cap-drop'), given('--pull')]).toEqual([
      'none',
      'none',
      'ALL',
      'never',
    ]);
    expect([given('--user'), given('--security-opt')]).toEqual(['65534:65534', 'no-new-privileges']);
    expect(args).toContain('--read-only');
    for (const option of ['--privileged', '--volume', '-v', '--mount', '--device', '--publish'])
      expect(args).not.toContain(option);
  });

  it('has still no network with egress: a socket of the proxy is mounted, and a relay speaks to it', () => {
    const endpoint = { socket: '/run/agon/1.sock', authorities: '/run/agon/authorities.pem' };
    const open = containerLaunch(engine, image, 'agon-1', runtime, limits, endpoint).args;
    expect(open[open.indexOf('--network') + 1]).toBe('none');
    expect(open.filter((_, i) => open[i - 1] === '--mount')).toEqual([
      'type=bind,source=/run/agon/1.sock,target=/egress/proxy.sock,readonly',
      'type=bind,source=/run/agon/authorities.pem,target=/egress/authorities.pem,readonly',
    ]);
    expect(open).toContain('HTTPS_PROXY=http://127.0.0.1:3128');
    expect(open.at(-1)).toMatch(/relay\.listen[\s\S]*send\('ready'\)/);
  });

  it('takes gVisor where there is one', () => {
    expect(args).not.toContain('--runtime');
    const guarded = containerLaunch({ ...engine, gvisor: true }, image, 'agon-1', runtime, limits).args;
    expect(guarded[guarded.indexOf('--runtime') + 1]).toBe('runsc');
  });

  it('ends with the image and what runs in it, which speaks the protocol by three descriptors', async () => {
    const [program = '', ...inside] = [given('--entrypoint') ?? '', ...args.slice(args.indexOf(image) + 1)];
    let destroyed = 0;
    const sandbox = new Sandbox(
      { program, args: inside, requestFd: 0, replyFd: 1, printFds: [2] },
      {
        clock: 'wall',
        limit: () => {},
        spentMs: () => 0,
        memoryBytes: () => 0,
        peakMemoryBytes: () => 0,
        oomKills: () => 0,
        destroy: async () => {
          destroyed += 1;
        },
      },
    );
    await sandbox.start();
    const line = await new Promise<string>((resolve) => {
      const events = { line: resolve, overlong: () => {}, flood: () => {}, gone: () => {} };
      sandbox.assign(events, { memoryBytes: 1, tasks: 1, logBytes: 99, outputBytes: 99, lineBytes: 99 });
      sandbox.send(
        `t boot ${JSON.stringify({ source: 'console.log("x"); const act = 1;', words: [1, 2, 3, 4], replyBytes: 9 })}`,
      );
    });
    expect(line).toBe('t N');
    await sandbox.destroy();
    expect(destroyed).toBe(1);
  });

  it.each(['python:3.12', 'python', `python@sha256:${'a'.repeat(63)}`, `--privileged@sha256:${'a'.repeat(64)} x`])(
    'refuses the image %s, which is not named by its digest',
    (name) => {
      expect(() => containerLaunch(engine, name, 'agon-1', runtime, limits)).toThrow(
        expect.objectContaining({ code: 'SANDBOX.IMAGE_NOT_PINNED' }),
      );
    },
  );
});

describe('a machine without an engine', () => {
  const path = process.env.PATH;
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agon-engine-'));
    process.env.PATH = folder;
  });
  afterEach(() => {
    process.env.PATH = path;
    rmSync(folder, { recursive: true, force: true });
  });

  it('is refused, with the reason', async () => {
    await expect(findEngine()).rejects.toMatchObject({
      code: 'SANDBOX.DRIVER_UNAVAILABLE',
      message: expect.stringContaining('neither'),
    });
    writeFileSync(join(folder, 'docker'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    await expect(ContainerDriver.open(image, runtime)).rejects.toMatchObject({
      code: 'SANDBOX.DRIVER_UNAVAILABLE',
      message: expect.stringContaining('does not answer'),
    });
  });
});

describe('the Kubernetes job', () => {
  const text = readFileSync(join(root, 'ops', 'k8s', 'sandbox-job.json'), 'utf8');
  const [policy, job] = JSON.parse(text.replace(/\$\{IMAGE\}/, image)).items;
  const pod = job.spec.template.spec;
  const [container] = pod.containers;

  it('runs one attempt, as nobody, without any right, on a kernel of its own', () => {
    expect(job).toMatchObject({
      apiVersion: 'batch/v1',
      kind: 'Job',
      spec: { backoffLimit: 0, activeDeadlineSeconds: 120 },
    });
    expect(pod).toMatchObject({
      restartPolicy: 'Never',
      runtimeClassName: 'gvisor',
      automountServiceAccountToken: false,
    });
    expect(pod).toMatchObject({ hostNetwork: false, hostPID: false, hostIPC: false });
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65_534,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toEqual({
      privileged: false,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('has limits on all that it uses, an image by digest, and no environment', () => {
    expect(container.image).toBe(image);
    expect(container.resources.limits).toMatchObject({ cpu: '1', memory: '128Mi', 'ephemeral-storage': '32Mi' });
    expect(pod.volumes).toEqual([{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '16Mi' } }]);
    expect(container.env ?? container.envFrom).toBeUndefined();
  });

  it('is cut off from every network by a policy that selects it', () => {
    expect(policy.spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'], ingress: [], egress: [] });
    expect(job.spec.template.metadata.labels).toMatchObject(policy.spec.podSelector.matchLabels);
  });
});
