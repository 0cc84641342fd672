import { definePart } from './part.js';
import { policies } from './policies.js';
import { writeSide } from './write-side.js';

/** What policies gave up on, for people to look at and to hand out again. */
export const deadLetters = definePart({
  name: 'dead letters',
  needs: { writeSide },
  start: async ({ writeSide: { execute } }, { engines }) => {
    const [value, checkpoints] = await Promise.all([engines.deadLetters({ policies, execute }), engines.checkpoints()]);
    const ready = async () => {
      const [first, ...more] = await checkpoints.deadLetters();
      if (!first) return 'none';
      const { group, code, message, position } = first;
      throw new Error(
        `${group} gave up at position ${position}: ${code}: ${message} (${more.length} more). See "agon bus replay"`,
      );
    };
    return { value, ready };
  },
});
