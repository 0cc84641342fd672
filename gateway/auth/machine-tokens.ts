import type { Actor } from '../../services/kernel/index.js';
import { type DataFolder, sameToken } from '../../services/runtime/data-folder.js';
import type { Config } from '../../services/runtime/settings.js';

/** Who shows which token of the machine itself: those of the configuration, or else the folder's. */
export function tokensOf(config: Config, folder: DataFolder) {
  const operator = config.operatorToken?.reveal() ?? folder.operatorToken();
  const runner = config.runnerToken?.reveal() ?? folder.runnerToken();
  const actorOf = (given: string): Actor | undefined => {
    if (sameToken(given, operator)) return { id: 'operator', role: 'operator' };
    return sameToken(given, runner) ? { id: 'runner', role: 'runner' } : undefined;
  };
  return { operator, actorOf };
}
