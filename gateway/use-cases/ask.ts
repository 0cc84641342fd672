import { accounts } from '../../services/accounts/index.js';
import { AgonError, type Command, type CommandMeta, slug } from '../../services/kernel/index.js';
import { metaOf, type RequestContext } from '../auth/actor.js';
import type { GatewayPorts } from '../ports.js';

/** What came of something that was asked for. */
export interface Receipt {
  readonly id: string;
  readonly events: readonly string[];
  /** Its place in the log; 0 when there was nothing to add. */
  readonly position: number;
  /** True when the same request had been carried out before. */
  readonly repeated: boolean;
}

/** What asking takes. Where nobody looks at the read models right away, nothing is waited for. */
export type AskPorts = Pick<GatewayPorts, 'execute' | 'ids' | 'clock'> & Partial<Pick<GatewayPorts, 'visible'>>;

/** Carries a command out; callers see what they have just done. */
export async function send(ports: AskPorts, id: string, command: Command): Promise<Receipt> {
  const { events, position, repeated } = await ports.execute(command);
  await ports.visible?.(position);
  return { id, events: events.map(({ type }) => type), position, repeated };
}

interface CommandOf<Data> {
  readonly spec: { readonly type: string };
  new (data: Data, meta: CommandMeta): Command;
}

/**
 * A use case that is a command and nothing else; the receipt is about the thing with this id.
 *
 * @example export const voidMatch = asks(VoidMatch, ({ matchId }) => matchId);
 */
export const asks =
  <Data extends object>(Asked: CommandOf<Data>, idOf: (data: Data) => string) =>
  (ports: AskPorts, context: RequestContext, data: Data): Promise<Receipt> =>
    send(ports, idOf(data), new Asked(data, metaOf(ports, context, Asked.spec.type)));

/** By its own events, which are there as soon as it is. */
export async function assertAccount({ load }: Pick<GatewayPorts, 'load'>, accountId: string): Promise<void> {
  if (slug.safeParse(accountId).success && (await load(accounts, accountId, 'tail')).state.registered) return;
  throw new AgonError('ACCOUNTS.UNKNOWN', `There is no account ${accountId}. Register it first.`);
}

export function assertGame({ games }: Pick<GatewayPorts, 'games'>, game: string): void {
  if (games.includes(game)) return;
  throw new AgonError('SANDBOX.UNKNOWN_GAME', `There is no game ${game}. Games: ${games.join(', ')}.`);
}
