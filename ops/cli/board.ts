import type { MatchRow, TurnRow } from '../../projections/matches/table.js';
import { gameNamed } from '../../sandbox-runner/index.js';
import { formatMoney } from '../../services/kernel/index.js';
import { colour } from './output.js';

/** The boards of a match, turn by turn, as the referee's own replay gives them. */
export function boardsOf(match: MatchRow, turns: readonly TurnRow[]): string[] {
  const game = gameNamed(match.game);
  let state = game.setup(match.seed);
  const boards = [game.render(state)];
  for (const turn of turns) {
    const action = game.parse(JSON.parse(turn.action));
    if (action === undefined || !game.legal(state).includes(action)) break;
    state = game.apply(state, action);
    boards.push(game.render(state));
  }
  return boards;
}

export function describeMatch(match: MatchRow, turns: readonly TurnRow[]): string {
  const lines = [
    `${colour.bold(match.game)}  ${match.matchId}`,
    ...match.seats.map((seat, i) => {
      const mark = match.winner === i ? colour.green('won') : match.status === 'settled' ? resultOf(match, i) : '';
      const paid = seat.payoutCents === undefined ? '' : `  paid ${formatMoney(BigInt(seat.payoutCents))}`;
      return `  seat ${i}  ${seat.agentId} v${seat.version}  ${mark}${paid}`;
    }),
    `  ${match.status}: ${match.reason}${match.detail ? ` - ${match.detail}` : ''}`,
    `  stake ${formatMoney(match.stakeCents)}  pot ${formatMoney(match.potCents)}  rake ${formatMoney(match.rakeCents)} ${match.currency}  seed ${match.seed}`,
  ];
  const boards = boardsOf(match, turns);
  boards.forEach((board, i) => {
    const turn = turns[i - 1];
    const title = turn ? `turn ${turn.turn}  seat ${turn.seat} plays ${turn.action}  (${turn.fuel} fuel)` : 'start';
    lines.push('', colour.dim(title), board);
  });
  if (boards.length <= turns.length) {
    const turn = turns[boards.length - 1];
    lines.push('', colour.red(`turn ${turn?.turn}  seat ${turn?.seat} plays ${turn?.action}: not legal`));
  }
  return lines.join('\n');
}

const resultOf = (match: MatchRow, seat: number): string => (match.seats[seat]?.score === 0.5 ? 'drew' : 'lost');
