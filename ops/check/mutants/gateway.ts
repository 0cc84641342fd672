import type { Mutant } from './mutant.js';

export const gatewayMutants: readonly Mutant[] = [
  {
    name: 'measure a fragment as nothing',
    file: 'gateway/graphql/limits.ts',
    find: '} else part = ofFragment(selection.name.value, paged);',
    replace: '} else part = NOTHING;',
    specs: 'gateway/graphql/limits',
  },
  {
    name: 'count a page as one row',
    file: 'gateway/graphql/limits.ts',
    find: 'pages ? rowsAsked(node)',
    replace: 'pages ? 1',
    specs: 'gateway/graphql/limits',
  },
  {
    name: 'fetch one by one what was asked for together',
    file: 'gateway/graphql/batch.ts',
    find: 'gathering ??= gather();',
    replace: 'gathering = gather();',
    specs: 'gateway/graphql/limits',
  },
];
