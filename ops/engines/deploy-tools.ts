import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cached, whyMissing } from './tools.js';

/** The same place as in deploy-tools.sh, which puts them there. */
const tool = (name: 'compose' | 'kustomize' | 'kubectl-validate') => cached('deploy-tools-1', name);
/** The newest whose schemas the tool has built in. */
const KUBERNETES = '1.30';

/** Why descriptions of a deployment cannot be judged by their own tools here, if they cannot. */
export const whyNoDeployTools = () => whyMissing(tool('kubectl-validate'), 'deploy-tools.sh builds it, with Go');

/** What Compose's own loader has to say against a file in which every variable has its value; empty when nothing. */
export const composeRefusal = (text: string): string =>
  refusal('docker-compose.yml', text, tool('compose'), ['-no-path-resolution']);

/** The resources of a folder, as kustomize hands them to Kubernetes: a stream of YAML. */
export const kustomized = (path: string): string =>
  execFileSync(tool('kustomize'), ['build', path], { encoding: 'utf8', maxBuffer: 2 ** 26 });

/** What Kubernetes' validation has to say against resources; empty when nothing. */
export const kubernetesRefusal = (resources: string): string =>
  refusal('resources.yaml', resources, tool('kubectl-validate'), ['--version', KUBERNETES]);

/** What a tool says against a file of this text, alone in a folder. */
function refusal(name: string, text: string, command: string, args: readonly string[]): string {
  const cwd = mkdtempSync(join(tmpdir(), 'agon-deploy-'));
  try {
    const file = join(cwd, name);
    writeFileSync(file, text);
    const { status, stdout, stderr } = spawnSync(command, [...args, file], { cwd, encoding: 'utf8' });
    return status === 0 ? '' : `${stdout}${stderr}`;
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}
