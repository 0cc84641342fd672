import { type Pairing, pairUp, type Ticket } from '../../services/arena/index.js';
import { AgonError, derivedId, newMeta, SYSTEM } from '../../services/kernel/index.js';
import type { WaitingAgent } from '../ports.js';
import { assertGame } from '../use-cases/ask.js';
import { type MatchPorts, matchIdOf, propose, seatOf } from '../use-cases/matches.js';

export interface QueuePorts extends MatchPorts {
  /** Agents of the house that play a game. */
  houseAgents(game: string): Promise<readonly string[]>;
}

export interface JoinRequest {
  readonly agentId: string;
  readonly accountId: string;
  readonly game: string;
  readonly stakeCents: string;
  readonly currency: string;
  /** The house agent to meet at once, or "house" for whichever comes first; empty for a person. */
  readonly against: string;
  readonly houseAfterMs: number;
}

export interface Joined {
  readonly matchId: string;
  readonly agents: readonly string[];
}

interface Waiting {
  readonly ticket: Ticket;
  readonly resolve: (joined: Joined | undefined) => void;
  readonly reject: (error: unknown) => void;
}

const LOOK_MS = 100;
const WAITING_MAX = 10_000;
const SHOWN_MAX = 200;

/**
 * Who waits for an opponent. Waiting is a call that has not been answered, so whatever ends it - the caller, the
 * connection, a crash of the arena - is noticed by the caller, who asks again. What is agreed on is a match in the log.
 */
export class MatchQueue {
  private readonly waits = new Map<string, Waiting>();
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly ports: QueuePorts) {
    this.timer = setInterval(() => this.pair(), LOOK_MS);
    this.timer.unref();
  }

  /** The match, or undefined when `signal` ended the waiting first. */
  async join(request: JoinRequest, signal: AbortSignal): Promise<Joined | undefined> {
    const { agentId, accountId, game, stakeCents, currency, against } = request;
    const { ids, clock } = this.ports;
    assertGame(this.ports, game);
    this.ports.assertSeats(game, 2);
    await seatOf(this.ports.load, agentId, game);
    const houseFromMs = request.houseAfterMs > 0 ? Date.parse(clock()) + request.houseAfterMs : undefined;
    const ticket: Ticket = { ticketId: ids(), agentId, accountId, game, stakeCents, currency, houseFromMs };
    if (against !== '') return this.meetHouse(ticket, against);
    if (this.waits.size >= WAITING_MAX) throw new AgonError('PLAY.QUEUE_FULL', 'Too many agents wait already.');
    if (signal.aborted) return undefined;
    return new Promise((resolve, reject) => {
      const leave = () => {
        if (this.waits.delete(ticket.ticketId)) resolve(undefined);
      };
      signal.addEventListener('abort', leave, { once: true });
      const done =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          signal.removeEventListener('abort', leave);
          settle(value);
        };
      this.waits.set(ticket.ticketId, { ticket, resolve: done(resolve), reject: done(reject) });
      this.pair();
    });
  }

  /** Who waits, longest first, and what for. */
  waiting(): readonly WaitingAgent[] {
    return [...this.waits.values()].slice(0, SHOWN_MAX).map(({ ticket }) => {
      const { agentId, accountId, game, stakeCents, currency, houseFromMs } = ticket;
      const house =
        houseFromMs === undefined ? '' : ` The house may sit down at ${new Date(houseFromMs).toISOString()}.`;
      const reason = `Nobody else's agent asks for ${game} at this stake.${house}`;
      return { agentId, accountId, game, stakeCents, currency, reason };
    });
  }

  /** Ends the waiting of an agent; says how many waits that were. */
  leave(agentId: string): number {
    const waits = [...this.waits.values()].filter(({ ticket }) => ticket.agentId === agentId);
    for (const { ticket, resolve } of waits) {
      this.waits.delete(ticket.ticketId);
      resolve(undefined);
    }
    return waits.length;
  }

  close(): void {
    clearInterval(this.timer);
    for (const { resolve } of this.waits.values()) resolve(undefined);
    this.waits.clear();
  }

  private pair(): void {
    if (this.waits.size === 0) return;
    const tickets = [...this.waits.values()].map(({ ticket }) => ticket);
    for (const pairing of pairUp(tickets, Date.parse(this.ports.clock()))) this.settle(pairing);
  }

  private settle(pairing: Pairing): void {
    const tickets = pairing.kind === 'pair' ? pairing.tickets : [pairing.ticket];
    const waits = tickets.flatMap(({ ticketId }) => this.waits.get(ticketId) ?? []);
    for (const { ticket } of waits) this.waits.delete(ticket.ticketId);
    const match =
      pairing.kind === 'pair'
        ? this.propose(pairing.tickets[0], pairing.tickets[1].agentId)
        : this.meetHouse(pairing.ticket, 'house');
    match.then(
      (joined) => {
        for (const { resolve } of waits) resolve(joined);
      },
      (error: unknown) => {
        for (const { reject } of waits) reject(error);
      },
    );
  }

  private async meetHouse(ticket: Ticket, against: string): Promise<Joined> {
    const house = await this.ports.houseAgents(ticket.game);
    const known = against === 'house' ? house : house.filter((agentId) => agentId === against);
    const opponent = known[Number.parseInt(derivedId('house', ticket.ticketId).slice(0, 8), 16) % known.length];
    if (opponent === undefined) {
      const who = against === 'house' ? 'no agent of the house' : `no agent ${against} of the house`;
      throw new AgonError('PLAY.NO_HOUSE', `There is ${who} that plays ${ticket.game}.`, { house });
    }
    return this.propose(ticket, opponent);
  }

  /** Both have asked for it, so the arena itself proposes. Who sits first is as good as drawn. */
  private async propose(ticket: Ticket, opponent: string): Promise<Joined> {
    const { game, stakeCents, currency, ticketId, agentId } = ticket;
    const { ids, clock } = this.ports;
    const meta = newMeta(SYSTEM, { id: derivedId('queue', ticketId, opponent), clock });
    const matchId = matchIdOf(meta);
    const agents = Number.parseInt(matchId.slice(0, 8), 16) % 2 === 0 ? [agentId, opponent] : [opponent, agentId];
    await propose(this.ports, meta, { game, agents, stakeCents, currency, seed: ids() });
    return { matchId, agents };
  }
}
