import { AgonError, isStaff } from '../../services/kernel/index.js';
import { RevokeRunner } from '../../services/runners/index.js';
import type { DeadLetterFilter } from '../../services/runtime/engines.js';
import { actorIn, type RequestContext } from '../auth/actor.js';
import type { GatewayPorts } from '../ports.js';
import { asks } from './ask.js';

/** Ends the trust in a runner's key, for good. */
export const revokeRunner = asks(RevokeRunner, ({ runnerId }) => runnerId);

/** Signs access tokens with a new key from now on; gives its kid. */
export async function rotateSigningKey({ identities }: Pick<GatewayPorts, 'identities'>, context: RequestContext) {
  if (!isStaff(actorIn(context, 'RotateSigningKey'))) {
    throw new AgonError('AUTH.FORBIDDEN', 'Only staff may change the signing key.');
  }
  return identities.ports.tokens.rotate();
}

/** Hands dead letters to their policies again. */
export async function replayBusLetters(
  ports: Pick<GatewayPorts, 'letters'>,
  context: RequestContext,
  filter: DeadLetterFilter,
) {
  assertOperates(context, 'ReplayLetters', 'replay dead letters');
  return ports.letters.replay(filter);
}

/** Builds a view anew beside the one that serves, then swaps them. */
export async function rebuildProjection(
  { projections }: Pick<GatewayPorts, 'projections'>,
  context: RequestContext,
  { view }: { view: string },
) {
  assertOperates(context, 'RebuildProjection', 'rebuild a view');
  await projections.ask(view);
  return projections.status(view);
}

function assertOperates(context: RequestContext, commandType: string, what: string): void {
  const { role } = actorIn(context, commandType);
  if (role === 'operator' || role === 'admin') return;
  throw new AgonError('AUTH.FORBIDDEN', `Only an operator may ${what}.`);
}
