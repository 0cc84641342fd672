import { AgonError, formatMoney, parseMoney } from '../../services/kernel/index.js';
import { accessOf } from './login.js';
import { colour, type Outcome, table } from './output.js';
import { ask } from './remote.js';

/** What each seat stakes, as it is written on the command line. */
export interface StakeFlags {
  /** In whole units, like 5 or 2.50. */
  readonly stake: string;
  readonly currency: string;
  /** In cents, as --stake of "agon queue join" and "agon agent play" was before it had a currency. */
  readonly stakeCents?: string;
}

interface SeatCost {
  readonly agentId: string;
  readonly accountId: string;
  readonly stakeCents: string;
  readonly currency: string;
  readonly computeCents: string;
  readonly refusal: string | null;
}

export function stakeOf({ stake, stakeCents, currency }: StakeFlags): { stakeCents: string; currency: string } {
  if (stakeCents !== undefined && stake !== '0') {
    throw new AgonError('COMMAND.INVALID', 'Give a stake once: with --stake, or with --stake-cents.');
  }
  const cents = stakeCents === undefined ? parseMoney(stake) : BigInt(stakeCents);
  if (cents < 0n) throw new AgonError('MONEY.INVALID', `"${stake}" is less than zero.`);
  return { stakeCents: cents.toString(), currency };
}

/** What a match would cost each seat. Nothing is held by asking. */
const costsOf = (dataDir: string, agents: readonly string[], stake: ReturnType<typeof stakeOf>) =>
  ask<SeatCost[]>(
    dataDir,
    'estimateMatch(agents: [String!]!, stakeCents: String!, currency: String!)',
    '{ agentId accountId stakeCents currency computeCents refusal }',
    { agents, ...stake },
  );

const stakeText = ({ stakeCents, currency }: SeatCost) => `${formatMoney(BigInt(stakeCents))} ${currency}`;
const computeText = ({ computeCents }: SeatCost) => `${formatMoney(BigInt(computeCents))} COMPUTE`;

/** Not good if one of the seats could not pay. */
export async function estimateMatch(dataDir: string, agents: readonly string[], flags: StakeFlags): Promise<Outcome> {
  const costs = await costsOf(dataDir, agents, stakeOf(flags));
  const rows = costs.map((cost) => {
    return [cost.agentId, cost.accountId, stakeText(cost), computeText(cost), cost.refusal ?? colour.green('yes')];
  });
  const text = table(['agent', 'account', '>stake', '>compute', 'can pay'], rows);
  return { json: costs, text, good: costs.every(({ refusal }) => refusal === null) };
}

/** The endpoint for agents and the one for questions are two addresses of one arena, or we would ask a stranger's wallet. */
async function assertSameHost(dataDir: string, arena: string): Promise<void> {
  const { url } = await accessOf(dataDir);
  const [asked, played] = [url, `http://${arena}`].map((each) =>
    new URL(each).hostname.replace('127.0.0.1', 'localhost'),
  );
  if (asked !== played) throw new AgonError('AUTH.NOT_SIGNED_IN', `you are signed in to ${url}, not to ${arena}`);
}

/** Says what a seat will cost before anything is staked, and refuses to stake what could not be paid. */
export async function sayCost(
  { dataDir, arena }: { dataDir: string; arena: string },
  agentId: string,
  stake: ReturnType<typeof stakeOf>,
  say: (text: string) => void,
): Promise<void> {
  let cost: SeatCost | undefined;
  try {
    await assertSameHost(dataDir, arena);
    [cost] = await costsOf(dataDir, [agentId], stake);
  } catch (error) {
    // Whoever has an API key alone may have no way to ask. The wallet decides in any case.
    if (stake.stakeCents !== '0') say(`what a match costs is not known here: ${(error as Error).message}`);
    return;
  }
  if (!cost || (cost.stakeCents === '0' && cost.computeCents === '0')) return;
  say(`a match costs ${agentId} ${stakeText(cost)} as its stake, and ${computeText(cost)}`);
  if (cost.refusal) throw new AgonError('WALLET.CANNOT_PAY', `${agentId} could not pay for a match: ${cost.refusal}.`);
}
