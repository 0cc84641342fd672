import type { Mutant } from './mutant.js';

export const observeMutants: readonly Mutant[] = [
  {
    name: 'let a caller begin a trace with any text',
    file: 'services/kernel/cause.ts',
    find: "if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;",
    replace: '',
    specs: 'services/kernel/cause',
  },
  {
    name: 'begin a trace of its own for every command of a runner',
    file: 'gateway/grpc/desk.ts',
    find: 'metaOf(id, queue.causeOf(matchId));',
    replace: 'metaOf(id);',
    specs: 'ops/embedded/tracing',
  },
  {
    name: 'tell of an append that was repeated',
    file: 'services/kernel/handle.ts',
    find: 'if (before) return repeat(context, stream, command, before, inputHash);',
    replace:
      'if (before) { onAppended?.(command, [], 0); return repeat(context, stream, command, before, inputHash); }',
    specs: 'services/kernel/handle',
  },
  {
    name: 'count every name that callers make up',
    file: 'ops/embedded/metrics.ts',
    find: 'if (known.size >= max || ',
    replace: 'if (',
    specs: 'ops/embedded/metrics',
  },
  {
    name: 'tell secrets that are in texts',
    file: 'ops/embedded/logging.ts',
    find: 'escaped(hidden(people',
    replace: 'escaped((people',
    specs: 'ops/embedded/logging',
  },
  {
    name: 'tell secrets that are in fields',
    file: 'ops/embedded/logging.ts',
    find: 'SECRET_KEY.test(key) ? HIDDEN : ',
    replace: '',
    specs: 'ops/embedded/logging',
  },
  {
    name: 'let characters into the log that move a cursor',
    file: 'ops/embedded/logging.ts',
    find: 'text.replace(UNSEEN, unicode)',
    replace: 'text',
    specs: 'ops/embedded/logging',
  },
  {
    name: 'read a name as it is spelt and not as it looks',
    file: 'gateway/content.ts',
    find: 'LOOKALIKES.get(char) ?? char',
    replace: 'char',
    specs: 'gateway/content',
  },
  {
    name: 'let through what could not be looked at',
    file: 'services/adapters/moderation.ts',
    find: "if (onFailure === 'open') return UNKNOWN;",
    replace: 'return UNKNOWN;',
    specs: 'services/adapters/moderation',
  },
];
