import { followDue, type MetaOf } from '../runtime/due.js';
import { definePart } from '../runtime/part.js';
import { writeSide } from '../runtime/write-side.js';
import { ExpireHolds, ExpiringHolds } from './index.js';

/** Gives back holds whose time has run out. */
export const holdExpiry = definePart({
  name: 'hold expiry',
  needs: { writeSide },
  start: async ({ writeSide: { execute } }, host) => {
    const begin = () => {
      const holds = new ExpiringHolds(host.clock);
      const due = (meta: MetaOf) =>
        holds.due().map((accountId) => new ExpireHolds({ accountId }, meta('expire holds', accountId)));
      return { fold: holds, due };
    };
    const consumer = await followDue(host, execute, { group: 'expiry', types: ExpiringHolds.types, begin });
    return host.follow('expiry', consumer);
  },
});
