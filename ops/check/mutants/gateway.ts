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
  {
    name: 'take tokens for what is refused',
    file: 'services/adapters/limits/memory.ts',
    find: 'const left = ok ? refilled - tokens : refilled;',
    replace: 'const left = refilled - tokens;',
    specs: 'services/adapters/limits',
  },
  {
    name: 'give every gateway a bucket of its own',
    file: 'services/adapters/limits/redis.ts',
    find: 'tonumber(bucket[1] or burst)',
    replace: 'burst',
    specs: 'services/adapters/limits',
  },
];
