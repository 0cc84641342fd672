import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';

/** The same place as in deploy-tools.sh, which puts them there. */
const folder = () => join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'agon', 'deploy-tools-1');
const tool = (name: 'compose' | 'kustomize' | 'kubectl-validate') => join(folder(), name);
/** The newest whose schemas the tool has built in. */
const KUBERNETES = '1.30';

/** Why descriptions of a deployment cannot be judged by their own tools here, if they cannot. */
export const whyNoDeployTools = (): string | undefined =>
  existsSync(tool('kubectl-validate'))
    ? undefined
    : `${folder()} is missing; ops/engines/deploy-tools.sh builds it, with Go`;

/** What Compose's own loader has to say against a file in which every variable has its value; empty when nothing. */
export const composeRefusal = (text: string): string =>
  withFile('docker-compose.yml', text, (file, cwd) => {
    const { status, stderr } = spawnSync(tool('compose'), ['-no-path-resolution', file], { cwd, encoding: 'utf8' });
    return status === 0 ? '' : stderr;
  });

/** The resources of a folder, as kustomize hands them to Kubernetes: a stream of YAML. */
export const kustomized = (path: string): string =>
  execFileSync(tool('kustomize'), ['build', path], { encoding: 'utf8', maxBuffer: 2 ** 26 });

/** What Kubernetes' validation has to say against resources; empty when nothing. */
export const kubernetesRefusal = (resources: string): string =>
  withFile('resources.yaml', resources, (file, cwd) => {
    const args = ['--version', KUBERNETES, file];
    const { status, stdout, stderr } = spawnSync(tool('kubectl-validate'), args, { cwd, encoding: 'utf8' });
    return status === 0 ? '' : `${stdout}${stderr}`;
  });

function withFile<T>(name: string, text: string, use: (file: string, cwd: string) => T): T {
  const cwd = mkdtempSync(join(tmpdir(), 'agon-deploy-'));
  try {
    const file = join(cwd, name);
    writeFileSync(file, text);
    return use(file, cwd);
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}
