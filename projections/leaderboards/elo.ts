/** Elo as the arena defines it: start 1500, K 32 for the first 30 games and 16 after. */
export const INITIAL_RATING = 1500;
export const PROVISIONAL_GAMES = 30;

export const kFactor = (gamesPlayed: number): number => (gamesPlayed < PROVISIONAL_GAMES ? 32 : 16);

/** The score that a player of this rating is expected to make against that one, 0 to 1. */
export const expectedScore = (rating: number, opponent: number): number => 1 / (1 + 10 ** ((opponent - rating) / 400));

/** Between two seats, from the first one's side. */
export const pairScore = (mine: number, theirs: number): number => (mine > theirs ? 1 : mine < theirs ? 0 : 0.5);

interface Player {
  readonly rating: number;
  readonly games: number;
}

/**
 * New ratings after one match. With more than two seats, each pair counts as a game between the two, and a seat's
 * change is the mean over its pairs; for two seats that is plain Elo.
 *
 * @example eloAfter([{ rating: 1500, games: 0 }, { rating: 1500, games: 0 }], [1, 0]) // [1516, 1484]
 */
export function eloAfter(players: readonly Player[], scores: readonly number[]): number[] {
  return players.map((player, seat) => {
    let change = 0;
    players.forEach((opponent, other) => {
      if (other === seat) return;
      const score = pairScore(scores[seat] ?? 0, scores[other] ?? 0);
      change += score - expectedScore(player.rating, opponent.rating);
    });
    return player.rating + (kFactor(player.games) * change) / (players.length - 1);
  });
}
