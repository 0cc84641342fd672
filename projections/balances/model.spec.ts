import fc from 'fast-check';
import { describe, it } from 'vitest';
import { MemoryEventStore } from '../../services/adapters/store/memory.js';
import { arena, ClaimMatch, ProposeMatch, ReportMatch, ReverseMatch, VoidMatch } from '../../services/arena/index.js';
import {
  type Command,
  type CommandMeta,
  type Context,
  createHandle,
  derivedId,
  type Handle,
  isAgonError,
  type Policy,
  SYSTEM,
} from '../../services/kernel/index.js';
import {
  BuyCredits,
  ClawBackFunds,
  DepositFunds,
  ExpireHolds,
  FreezeWallet,
  GrantCredits,
  HoldFunds,
  PostHold,
  SetBudget,
  UnfreezeWallet,
  VoidHold,
  wallet,
} from '../../services/wallet/index.js';
import { auditMoney } from './audit.js';

const contexts = [wallet, arena];
const policies = contexts.flatMap(({ policies = [] }) => policies) as Policy[];
const contextOf = new Map(contexts.flatMap((context) => context.commands.map(({ spec }) => [spec.type, context])));
const ACCOUNTS = ['ada', 'bob', 'cyd', 'dan'];
const HOUR_MS = 3_600_000;
const START = '2026-01-01T00:00:00.000Z';

/** What the business may refuse. Anything else that is thrown is a fault. */
const REFUSALS = [
  /^WALLET\.(HOLD_EXISTS|UNKNOWN_HOLD|UNKNOWN_DEPOSIT|DEPOSIT_DIFFERS|CLAW_BACK_TOO_LARGE|INSUFFICIENT_FUNDS|OWED)$/,
  /^ARENA\.(UNKNOWN_MATCH|MATCH_EXISTS|SETTLED|NOT_SETTLED|NOT_READY|LEASE_LOST|BAD_OUTCOME)$/,
];

/** Everybody starts with some of everything, so that most of what is asked for can be had. */
const endowment = (async () => {
  const store = new MemoryEventStore();
  const handle = createHandle({ store });
  for (const accountId of ACCOUNTS) {
    for (const currency of ['USD', 'PLAY']) {
      const id = derivedId('endowment', accountId, currency);
      const meta = { id, actor: SYSTEM, time: START, correlationId: id, causationId: id };
      const data = { accountId, currency, amountCents: '200', depositId: `${accountId}-${currency}-0` };
      await handle(wallet, new DepositFunds({ ...data, withdrawableAt: START }, meta));
    }
  }
  return (await store.readAll()).map(({ position: _position, ...event }) => event);
})();

/** Two processes on one log, each with folds of its own, and the policies between the contexts. */
class House {
  readonly store = new MemoryEventStore();
  private readonly handles: readonly Handle[] = [0, 1].map(() =>
    createHandle({ store: this.store, attemptsMax: 1_000 }),
  );
  private readonly sent: Command[] = [];
  private seen = 0;
  private count = 0;

  static async open(): Promise<House> {
    const house = new House();
    for (const event of await endowment) await house.store.append(event.stream, event.revision - 1, [event]);
    return house;
  }

  meta(): CommandMeta {
    const id = derivedId('model', this.count++);
    const time = new Date(Date.parse(START) + this.count * HOUR_MS).toISOString();
    return { id, actor: SYSTEM, time, correlationId: id, causationId: id };
  }

  async send(command: Command, process: number): Promise<void> {
    this.sent.push(command);
    try {
      await this.handles[process % 2]?.(contextOf.get(command.type) as Context, command);
    } catch (error) {
      if (!REFUSALS.some((codes) => isAgonError(error) && codes.test(error.code))) throw error;
    }
  }

  /** A command again, by either process: what it did it does not do twice. */
  async repeat(which: number, process: number): Promise<void> {
    const command = this.sent[which % Math.max(1, this.sent.length)];
    if (!command) return;
    const done = async () => (await this.store.readAll()).filter(({ meta }) => meta.commandId === command.meta.id);
    const before = await done();
    await this.send(command, process);
    if (before.length > 0) must((await done()).length === before.length, () => `${command.type} was done twice`);
  }

  /** Delivers some of what is new, at least once: some of it twice. */
  async deliver(most: number, process: number): Promise<void> {
    const page = await this.store.readAll({ after: this.seen, limit: most });
    for (const event of page) {
      for (const policy of policies.filter(({ types }) => types.includes(event.type))) {
        for (const command of policy.react(event)) {
          await this.send(command, process);
          if (event.position % 8 === 0) await this.send(command, process + 1);
        }
      }
      this.seen = event.position;
    }
  }

  async drain(): Promise<void> {
    while (this.seen < (await this.store.lastPosition())) await this.deliver(100, 0);
  }
}

/** What expect() says, at a price that can be paid at every position of ten thousand logs. */
function must(holds: boolean, otherwise: () => string): void {
  if (!holds) throw new Error(otherwise());
}

type Action = (house: House, process: number) => Promise<void>;

const account = fc.constantFrom(...ACCOUNTS);
const currency = fc.constantFrom('USD', 'PLAY');
const amount = fc.integer({ min: 1, max: 300 }).map(String);
const few = fc.nat(2);
const match = fc.nat(1).map((n) => derivedId('model-match', n));
const money = fc.record({ accountId: account, amountCents: amount, currency });
const command =
  (make: (meta: CommandMeta) => Command): Action =>
  (house, process) =>
    house.send(make(house.meta()), process);

const deposits = fc.tuple(money, few).map(([data, n]) => {
  const depositId = `${data.accountId}-${data.currency}-${n}`;
  return command((meta) => new DepositFunds({ ...data, depositId, withdrawableAt: meta.time }, meta));
});
const grants = money.map((data) => command((meta) => new GrantCredits({ ...data, reason: 'model' }, meta)));
const clawBacks = fc.tuple(money, few, few).map(([data, n, claim]) => {
  const { accountId, currency } = data;
  const deposit = { depositId: `${accountId}-${currency}-${n}`, clawBackId: `claim-${claim}` };
  return command((meta) => new ClawBackFunds({ ...data, ...deposit, reason: 'chargeback' }, meta));
});
const withdrawals = fc.tuple(money, few).map(([data, n]) => {
  const purpose = { kind: 'withdrawal', withdrawalId: `w${n}` } as const;
  return command((meta) => new HoldFunds({ ...data, holdId: `w${n}`, purpose }, meta));
});
const runs = fc.tuple(money, few).map(([data, n]) => {
  const purpose = { kind: 'run', runId: `r${n}`, agentId: `${data.accountId}.bot` } as const;
  return command((meta) => new HoldFunds({ ...data, holdId: `r${n}`, purpose, expiresAt: meta.time }, meta));
});
const ends = fc.tuple(account, fc.constantFrom('w0', 'w1', 'r0', 'r1'), few).map(([accountId, holdId, how]) =>
  command((meta) => {
    if (how === 0) return new PostHold({ accountId, holdId, payoutCents: '0' }, meta);
    return how === 1 ? new VoidHold({ accountId, holdId }, meta) : new ExpireHolds({ accountId }, meta);
  }),
);
const freezes = fc
  .tuple(account, fc.boolean())
  .map(([accountId, on]) =>
    command((meta) => new (on ? FreezeWallet : UnfreezeWallet)({ accountId, reason: 'model' }, meta)),
  );
const budgets = fc
  .tuple(account, currency, amount)
  .map(([accountId, currency, totalCents]) =>
    command((meta) => new SetBudget({ accountId, currency, totalCents }, meta)),
  );
const purchases = fc.tuple(account, amount).map(([accountId, amountCents]) => {
  const paid = { amountCents, currency: 'USD' };
  return command((meta) => new BuyCredits({ accountId, packId: 'p', creditCents: '700', paid }, meta));
});
const proposals = fc
  .record({
    matchId: match,
    seats: fc.uniqueArray(account, { minLength: 2, maxLength: 3, size: 'small' }),
    stakeCents: fc.constantFrom('0', '1', '50', '99'),
    currency,
    sponsor: fc.option(account, { nil: undefined }),
  })
  .map(({ matchId, seats, stakeCents, currency, sponsor }) => {
    const at = seats.map((accountId) => ({
      agentId: `${accountId}.bot`,
      accountId,
      version: 1,
      codeDigest: 'a'.repeat(64),
      runtime: 'javascript' as const,
    }));
    const bounty = sponsor && { bounty: { bountyId: 'bounty', sponsorId: sponsor, amountCents: '31' } };
    const terms = { matchId, game: 'g', seed: 's', seats: at, stakeCents, currency, rakeBps: 700 };
    return command((meta) => new ProposeMatch({ ...terms, ...bounty, disputeWindowMs: HOUR_MS }, meta));
  });
/** Every score a share of one; three seats get the third one's as well. */
const results = fc.tuple(match, fc.constantFrom<number[]>([1, 0], [0, 1], [0.5, 0.5], [1, 0, 0], [0.4, 0.4, 0.2])).map(
  ([matchId, scores]): Action =>
    async (house, process) => {
      const attempt = { matchId, runnerId: 'runner', attempt: 1 };
      await house.send(new ClaimMatch({ ...attempt, leaseMs: HOUR_MS }, house.meta()), process);
      const outcome = { winner: null, scores, reason: 'line', detail: '', seatAtFault: null };
      const execution = { driver: 'wasm', gameVersion: 1, limits: {}, usage: [] };
      // Some have a score too many or too few, as a broken runner's would.
      await house.send(new ReportMatch({ ...attempt, turns: [], outcome, execution }, house.meta()), process);
    },
);
const matchEnds = fc.tuple(match, fc.boolean()).map(([matchId, isVoid]) =>
  command((meta) => {
    return isVoid ? new VoidMatch({ matchId, detail: '' }, meta) : new ReverseMatch({ matchId, reason: 'model' }, meta);
  }),
);
const deliveries = fc.integer({ min: 1, max: 30 }).map(
  (most): Action =>
    (house, process) =>
      house.deliver(most, process),
);
const repeats = fc.nat(40).map(
  (which): Action =>
    (house, process) =>
      house.repeat(which, process),
);

const action = fc.oneof(
  { arbitrary: deposits, weight: 1 },
  { arbitrary: fc.oneof(grants, runs, freezes, budgets, purchases, repeats), weight: 3 },
  { arbitrary: fc.oneof(withdrawals, ends, clawBacks), weight: 4 },
  { arbitrary: proposals, weight: 3 },
  { arbitrary: results, weight: 5 },
  { arbitrary: matchEnds, weight: 2 },
);

/** Some at once, from both processes; then some of the deliveries that they caused. */
class Burst implements fc.AsyncCommand<object, House> {
  constructor(
    private readonly actions: readonly Action[],
    private readonly after: Action,
  ) {}

  check(): boolean {
    return true;
  }

  async run(_model: object, house: House): Promise<void> {
    await Promise.all(this.actions.map((act, process) => act(house, process)));
    await this.after(house, 0);
  }

  toString(): string {
    return `${this.actions.length} at once`;
  }
}

const bursts = fc
  .tuple(fc.array(action, { minLength: 1, maxLength: 4, size: 'max' }), deliveries)
  .map(([actions, after]) => new Burst(actions, after));

describe('money, whatever is asked of it by many at once', () => {
  it('is never overdrawn, sums to zero at every position, and is in the ledger as it is in the fold', async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands([bursts], { maxCommands: 6, size: 'max' }), async (commands) => {
        const house = await House.open();
        await fc.asyncModelRun(() => ({ model: {}, real: house }), commands);
        await house.drain();
        const faults = auditMoney(await house.store.readAll());
        must(faults.length === 0, () => faults.join('\n'));
        await house.store.close();
      }),
      { seed: 4, numRuns: 10_000 },
    );
  }, 300_000);
});
