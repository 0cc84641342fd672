import 'reflect-metadata';
import { withContentRules } from '../../gateway/content.js';
import { contexts } from '../index.js';
import { createHandle, Folds } from '../kernel/index.js';
import { commandBusOf } from '../kernel/nest.js';
import { contentRulesFrom } from './content.js';
import { definePart } from './part.js';

/** Carries out commands: the one way to the log. */
export const writeSide = definePart({
  name: 'write side',
  needs: {},
  start: async (_needs, host) => {
    const store = await host.engines.log();
    const { onHandled, onAppended } = await host.telemetry();
    const folds = new Folds({ store });
    const handle = createHandle({ store, folds, onHandled, onAppended });
    const rules = contentRulesFrom(host.config, host.log);
    const { execute, close } = await commandBusOf(contexts, withContentRules(handle, rules));
    return { value: { execute, load: folds.load }, stop: close };
  },
});
