import { join } from 'node:path';
import { describe, it } from 'vitest';
import { sdkScenarios } from '../scenarios.contract.js';
import { pythonPath, pythonWithSdk, sdkFolder, whyNoPython } from './python.contract.js';

if (whyNoPython === undefined) {
  sdkScenarios('Python', [pythonWithSdk, join(sdkFolder, 'tests', 'actor.py')], pythonPath);
} else {
  describe('agents that play by the SDK for Python', () => {
    it.skipIf(true)(`pass every scenario: ${whyNoPython}`, () => {});
  });
}
