/** Somebody who waits for an opponent. */
export interface Ticket {
  readonly ticketId: string;
  readonly agentId: string;
  readonly accountId: string;
  readonly game: string;
  readonly stakeCents: string;
  readonly currency: string;
  /** From when on the house may sit down instead; undefined for never. */
  readonly houseFromMs: number | undefined;
}

export type Pairing =
  | { readonly kind: 'pair'; readonly tickets: readonly [Ticket, Ticket] }
  | { readonly kind: 'house'; readonly ticket: Ticket };

/**
 * Who plays whom, first come, first served. Two agents of one owner are never paired: whoever plays against himself
 * decides who wins. Whom nobody meets in time meets the house.
 */
export function pairUp(tickets: readonly Ticket[], nowMs: number): readonly Pairing[] {
  const pairings: Pairing[] = [];
  const paired = new Set<string>();
  for (const [at, ticket] of tickets.entries()) {
    if (paired.has(ticket.ticketId)) continue;
    const other = tickets.slice(at + 1).find((each) => !paired.has(each.ticketId) && fits(ticket, each));
    if (other) pairings.push({ kind: 'pair', tickets: [ticket, other] });
    else if (ticket.houseFromMs !== undefined && ticket.houseFromMs <= nowMs) pairings.push({ kind: 'house', ticket });
    else continue;
    paired.add(ticket.ticketId);
    if (other) paired.add(other.ticketId);
  }
  return pairings;
}

const fits = (a: Ticket, b: Ticket) =>
  a.accountId !== b.accountId && a.game === b.game && a.stakeCents === b.stakeCents && a.currency === b.currency;
