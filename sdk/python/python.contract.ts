import { join } from 'node:path';
import { whyNoPythonSdk } from '../../ops/engines/tools.js';
import { packageRoot } from '../../services/runtime/package.js';

export { pythonWithSdk } from '../../ops/engines/tools.js';
export const sdkFolder = join(packageRoot, 'sdk', 'python');
export const pythonPath = { PYTHONPATH: sdkFolder, PYTHONDONTWRITEBYTECODE: '1' };

/** Why the specs of the SDK for Python cannot run here; undefined when they can. */
export const whyNoPython = whyNoPythonSdk();
