import type { MatchRow, TurnRow } from '../../projections/matches/table.js';
import { gameNamed, isLegal, type MatchRecord } from '../../sandbox-runner/index.js';
import type { MatchExecution } from '../../services/arena/index.js';
import { formatMoney } from '../../services/kernel/index.js';
import { colour } from './output.js';

/** The positions of a match, turn by turn, as the referee's own replay gives them. */
function positionsOf(match: MatchRow, turns: readonly TurnRow[]): unknown[] {
  const game = gameNamed(match.game);
  let state = game.setup(match.seed, match.seats.length);
  const positions = [state];
  for (const turn of turns) {
    const action = game.parse(JSON.parse(turn.action));
    if (action === undefined || !isLegal(game, state, action)) break;
    state = game.apply(state, action);
    positions.push(state);
  }
  return positions;
}

/** The last position as an SVG document. */
export const pictureOf = (match: MatchRow, turns: readonly TurnRow[]): string =>
  gameNamed(match.game).svg(positionsOf(match, turns).at(-1));

/** A share of a thousand chips needs no more digits than this; 0, 0.5 and 1 stay as they are. */
export const scoreText = (score: number | undefined): string => `${Number((score ?? 0).toFixed(3))}`;

/** What seats did on the network, a line for each place; nothing for a match without egress. */
export const egressLines = ({ usage, deterministic }: Pick<MatchRecord, 'usage' | 'deterministic'>): string[] =>
  deterministic === undefined
    ? []
    : [
        '  not deterministic: egress was granted',
        ...usage.flatMap(({ egress }, seat) =>
          (egress ?? []).map(
            ({ host, port, requests, refused, bytesIn, bytesOut }) =>
              `  egress  seat ${seat}  ${host}:${port}  ${requests} requests, ${refused} refused, ${bytesOut} B out, ${bytesIn} B in`,
          ),
        ),
      ];

export function describeMatch(match: MatchRow, turns: readonly TurnRow[], execution?: MatchExecution): string {
  const lines = [
    `${colour.bold(match.game)}  ${match.matchId}`,
    ...match.seats.map((seat, i) => {
      const mark = match.winner === i ? colour.green('won') : match.status === 'settled' ? resultOf(match, i) : '';
      const score = seat.score === undefined ? '' : `  ${scoreText(seat.score)}`;
      const paid = seat.payoutCents === undefined ? '' : `  paid ${formatMoney(BigInt(seat.payoutCents))}`;
      return `  seat ${i}  ${seat.agentId} v${seat.version}  ${mark}${score}${paid}`;
    }),
    `  ${match.status}: ${match.reason}${match.detail ? ` - ${match.detail}` : ''}`,
    `  stake ${formatMoney(match.stakeCents)}  pot ${formatMoney(match.potCents)}  rake ${formatMoney(match.rakeCents)} ${match.currency}  seed ${match.seed}`,
    ...(execution ? egressLines(execution as Pick<MatchRecord, 'usage' | 'deterministic'>) : []),
  ];
  const game = gameNamed(match.game);
  const boards = positionsOf(match, turns).map((position) => game.render(position));
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

function resultOf(match: MatchRow, seat: number): string {
  const scores = match.seats.map((each) => each.score ?? 0);
  return match.winner === null && scores[seat] === Math.max(...scores) ? 'drew' : 'lost';
}
