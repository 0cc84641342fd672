import { setTimeout as sleep } from 'node:timers/promises';
import { houseAgentSource } from '../../sandbox-runner/index.js';
import { AgonError } from '../../services/kernel/index.js';

const STAKE_CENTS = '100';
const GAMES = ['tic-tac-toe', 'connect-four'];
const STYLES = ['random', 'first', 'centre', 'tactician'];
const ENDED = ['settled', 'voided', 'reversed'];
const ATTEMPT_MS = 5_000;
const PAUSE_MS = 50;

/** What somebody was told that the arena has done. */
export interface Receipt {
  readonly id: string;
  readonly position: number;
  readonly events: readonly string[];
}

interface Response<T> {
  readonly data?: T;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
}

/**
 * A season of staked matches, played through a gateway as anybody could: owners with an agent each, who meet in rounds.
 * In a round nobody plays twice, and a round begins when the one before it is played and paid. So every stream gets the
 * same events in the same order, on whatever deployment, though matches of a round are played side by side.
 *
 * Every request has a key, and is sent again until it is answered: whatever dies meanwhile, it is carried out once.
 */
export class Season {
  /** Everything that was acknowledged. */
  readonly receipts: Receipt[] = [];
  readonly matchIds: string[] = [];
  /** Requests that had to be sent again. */
  retries = 0;

  constructor(
    private readonly arena: { readonly url: string; readonly token: string },
    private readonly seed: string,
    private readonly owners: number,
    private readonly patienceMs = 90_000,
  ) {}

  async open(): Promise<void> {
    const sources = await Promise.all(STYLES.map((style) => houseAgentSource(style)));
    await Promise.all(
      this.names().map(async (accountId, i) => {
        await this.send(`owner ${accountId}`, 'registerOwner', { accountId, displayName: `Owner ${i + 1}` });
        await this.send(`grant ${accountId}`, 'grantCredits', { accountId, amountCents: '100000' });
        const agent = { ownerId: accountId, name: 'bot', games: GAMES, source: sources[i % sources.length] ?? '' };
        await this.send(`agent ${accountId}`, 'submitAgent', agent);
      }),
    );
  }

  /** Proposes the matches of a round, everybody against somebody; resolves when they are acknowledged. */
  async propose(round: number): Promise<void> {
    const names = this.names();
    await Promise.all(
      pairsOf(this.owners, round).map(async ([a, b], i) => {
        const { id } = await this.send(`match ${round} ${i}`, 'proposeMatch', {
          game: GAMES[(round + i) % GAMES.length] ?? '',
          agents: [`${names[a]}.bot`, `${names[b]}.bot`],
          seed: `${this.seed}/${round}/${i}`,
          stakeCents: STAKE_CENTS,
        });
        this.matchIds.push(id);
      }),
    );
  }

  /** Until every match that was proposed has ended and been paid for. */
  async paid(): Promise<void> {
    const endMs = performance.now() + this.patienceMs;
    for (;;) {
      const held = await this.held();
      const left = await this.unfinished();
      if (held === 0n && left === 0) return;
      if (performance.now() > endMs) {
        throw new AgonError('SEASON.STUCK', `${left} matches have not ended, and ${held} cents are held.`);
      }
      await sleep(PAUSE_MS);
    }
  }

  /** What there is to compare, once every view has taken in everything and the boards with them. */
  async outcome(): Promise<{ balances: unknown; boards: unknown }> {
    const lag = () => this.ask<{ projections: { lagEvents: number }[] }>('{ projections { lagEvents } }');
    while ((await lag()).projections.some(({ lagEvents }) => lagEvents > 0)) await sleep(PAUSE_MS);
    // Boards follow the rows a moment later: what is told twice in a row is what they come to.
    for (let before = await this.standings(); ; ) {
      await sleep(PAUSE_MS * 4);
      const now = await this.standings();
      if (JSON.stringify(now) === JSON.stringify(before)) return now;
      before = now;
    }
  }

  /** Who has what, and how good everybody is. */
  private async standings(): Promise<{ balances: unknown; boards: unknown }> {
    const balances = await this.ask(`{ balances(first: 100) { nodes { account currency balanceCents } } }`);
    const standing = '{ rank agentId rating streak games wins draws losses confidence { rating deviation } }';
    const boards = await this.ask(
      `{ ${GAMES.map((game, i) => `g${i}: leaderboard(game: "${game}", first: 100) ${standing}`).join(' ')} }`,
    );
    return { balances, boards };
  }

  async ask<T>(query: string, variables: Record<string, unknown> = {}, key?: string): Promise<T> {
    const endMs = performance.now() + this.patienceMs;
    for (let first = true; ; first = false) {
      if (!first) this.retries += 1;
      try {
        const { data, errors } = await this.request<T>(query, variables, key);
        const code = errors?.[0]?.extensions?.code ?? '';
        if (!errors?.length && data) return data;
        const error = new AgonError(code || 'SEASON.REFUSED', errors?.[0]?.message ?? 'no data');
        // What the read side does not know yet, and what is away for a moment, is asked for again.
        if (!/^(ACCOUNTS.UNKNOWN|AGENTS.UNKNOWN|DATABASE|STORE|INTERNAL|COMMAND.CONTENDED|BUS|NET)/.test(code))
          throw error;
        if (performance.now() > endMs) throw error;
      } catch (error) {
        if (error instanceof AgonError || performance.now() > endMs) throw error;
      }
      await sleep(PAUSE_MS * 4);
    }
  }

  private async request<T>(query: string, variables: object, key: string | undefined): Promise<Response<T>> {
    const { url, token } = this.arena;
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${token}`,
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      body: JSON.stringify({ query, variables }),
      signal: AbortSignal.timeout(ATTEMPT_MS),
    });
    return (await response.json()) as Response<T>;
  }

  /** Every argument that there is, is a text or a list of them. */
  private async send(
    name: string,
    mutation: string,
    variables: Readonly<Record<string, string | readonly string[]>>,
  ): Promise<Receipt> {
    const given = Object.entries(variables);
    const declared = given.map(
      ([variable, value]) => `$${variable}: ${typeof value === 'string' ? 'String!' : '[String!]!'}`,
    );
    const call = `${mutation}(${given.map(([variable]) => `${variable}: $${variable}`).join(', ')})`;
    const query = `mutation Do(${declared.join(', ')}) { done: ${call} { id events position repeated } }`;
    const { done } = await this.ask<{ done: Receipt }>(query, variables, `${this.seed} ${name}`);
    this.receipts.push(done);
    return done;
  }

  /** Wallets are read from their own events, so this never is behind. */
  private async held(): Promise<bigint> {
    const asked = this.names().map(
      (name, i) => `w${i}: wallet(accountId: "${name}") { purses { currency heldCents } }`,
    );
    const found = await this.ask<Record<string, { purses: { heldCents: string }[] }>>(`{ ${asked.join(' ')} }`);
    const purses = Object.values(found).flatMap((wallet) => wallet.purses);
    return purses.reduce((sum, { heldCents }) => sum + BigInt(heldCents), 0n);
  }

  /** How many of the latest matches have not ended, as far as the read side has heard. */
  private async unfinished(): Promise<number> {
    const { matches } = await this.ask<{ matches: { nodes: { matchId: string; status: string }[] } }>(
      '{ matches(first: 100) { nodes { matchId status } } }',
    );
    const over = matches.nodes.filter(({ status }) => ENDED.includes(status)).map(({ matchId }) => matchId);
    return this.matchIds.slice(-50).filter((id) => !over.includes(id)).length;
  }

  private names(): string[] {
    return Array.from({ length: this.owners }, (_, i) => `${this.seed}-${String(i + 1).padStart(2, '0')}`);
  }
}

/** The circle method: in every round all meet somebody, and in as many rounds less one as there are players each meets each. */
function pairsOf(players: number, round: number): [number, number][] {
  const others = players - 1;
  const at = (i: number) => (i === 0 ? 0 : 1 + ((i - 1 + round) % others));
  return Array.from({ length: players / 2 }, (_, i) => {
    const pair: [number, number] = [at(i), at(players - 1 - i)];
    return round % 2 === 0 ? pair : [pair[1], pair[0]];
  });
}
