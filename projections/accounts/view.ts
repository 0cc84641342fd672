import { type AccountEvent, accountEvents } from '../../services/accounts/index.js';
import type { RecordedEvent } from '../../services/kernel/index.js';
import { type SessionEvent, sessionEvents } from '../../services/sessions/index.js';
import { defineView, type Rows } from '../engine/view.js';
import { audit, members } from './table.js';

type AccountFact = RecordedEvent & { readonly data: { readonly accountId: string } };

/** Who did it, when and what; of keys and tokens not even the hash. */
function note(event: AccountFact, rows: Rows): void {
  const {
    accountId,
    secretHash: _secret,
    tokenHash: _token,
    ...detail
  } = event.data as AccountFact['data'] & Partial<Record<string, unknown>>;
  const { id: actorId, role: actorRole } = event.meta.actor;
  const { type, time: at } = event;
  rows.add(audit, { accountId, position: BigInt(event.position), at, type, actorId, actorRole, detail });
}

const noted = Object.fromEntries(
  [...Object.keys(accountEvents.specs), ...Object.keys(sessionEvents.specs)]
    .filter((type) => type !== 'SessionRefreshed')
    .map((type) => [type, { apply: note as never }]),
);

/** Who acts for whom, and what happened to accounts. */
export const accountsView = defineView<AccountEvent | SessionEvent>({
  name: 'accounts',
  version: 1,
  tables: [members, audit],
  on: {
    ...noted,
    MemberSet: {
      apply: (event, rows) => {
        note(event, rows);
        rows.put(members, event.data);
      },
    },
    MemberRemoved: {
      apply: (event, rows) => {
        note(event, rows);
        rows.remove(members, event.data.memberId, event.data.accountId);
      },
    },
  },
});
