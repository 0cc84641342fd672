import { join } from 'node:path';
import { execPath } from 'node:process';
import { packageRoot } from '../../services/runtime/package.js';
import { sdkScenarios } from '../scenarios.contract.js';

sdkScenarios('TypeScript', [execPath, join(packageRoot, 'dist', 'sdk', 'typescript', 'actor.js')]);
