"""A table at home: plays whole matches offline against a simple opponent, to try an agent before it goes out."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Literal, Optional, overload

from .chess import ChessRules
from .games import Chess, Choice, ConnectFour, Leduc, LeducMove, Prisoners, TicTacToe
from .player import Act, Decision, Turn
from .rules import Chance, ConnectFourRules, LeducRules, Outcome, PrisonersRules, TicTacToeRules

TURN_MS, BANK_MS = 2_000, 60_000

#: Each is made with the match's seed and the number of seats.
RULES: Dict[str, Callable[[str, int], Any]] = {
    "tic-tac-toe": TicTacToeRules,
    "connect-four": ConnectFourRules,
    "leduc-holdem": LeducRules,
    "chess": ChessRules,
    "prisoners": PrisonersRules,
}


@dataclass(frozen=True)
class Practised:
    winner: Optional[int]
    #: From 0 to 1, as the arena would count it.
    score: float
    reason: str
    seat: int
    #: How many moves were played, by all seats.
    turns: int

    @property
    def won(self) -> bool:
        return self.winner == self.seat


@overload
def practise(
    act: Act[TicTacToe, int],
    *,
    game: Literal["tic-tac-toe"] = "tic-tac-toe",
    opponent: Optional[Callable[[TicTacToe], int]] = None,
    seat: int = 0,
    seats: int = 2,
    seed: int = 0,
) -> Practised: ...


@overload
def practise(
    act: Act[ConnectFour, int],
    *,
    game: Literal["connect-four"],
    opponent: Optional[Callable[[ConnectFour], int]] = None,
    seat: int = 0,
    seats: int = 2,
    seed: int = 0,
) -> Practised: ...


@overload
def practise(
    act: Act[Leduc, LeducMove],
    *,
    game: Literal["leduc-holdem"],
    opponent: Optional[Callable[[Leduc], LeducMove]] = None,
    seat: int = 0,
    seats: int = 2,
    seed: int = 0,
) -> Practised: ...


@overload
def practise(
    act: Act[Chess, str],
    *,
    game: Literal["chess"],
    opponent: Optional[Callable[[Chess], str]] = None,
    seat: int = 0,
    seats: int = 2,
    seed: int = 0,
) -> Practised: ...


@overload
def practise(
    act: Act[Prisoners, List[Choice]],
    *,
    game: Literal["prisoners"],
    opponent: Optional[Callable[[Prisoners], List[Choice]]] = None,
    seat: int = 0,
    seats: int = 2,
    seed: int = 0,
) -> Practised: ...


def practise(
    act: Act[Any, Any],
    *,
    game: str = "tic-tac-toe",
    opponent: Optional[Callable[[Any], Any]] = None,
    seat: int = 0,
    seats: int = 2,
    seed: int = 0,
) -> Practised:
    """One match by the arena's rules and clock; the others play at random unless an opponent is given.

    The same seed deals the same cards and draws the same moves for the opponent, in every language.

    >>> practise(lambda observation, turn: observation["legal"][0], game="connect-four").reason
    'line'
    """
    if game not in RULES:
        raise ValueError(f"{game} cannot be practised here, only {', '.join(RULES)}.")
    if not 2 <= seats <= (8 if game == "prisoners" else 2):
        raise ValueError(f"{game} is not played by {seats}.")
    state = RULES[game](str(seed), seats)
    draw = Chance("practice", str(seed))
    other = opponent or (lambda observation: observation["legal"][draw.below(len(observation["legal"]))])
    bank_ms, turns = float(BANK_MS), 0

    def end(outcome: Outcome) -> Practised:
        return Practised(outcome.winner, outcome.scores[seat], outcome.reason, seat, turns)

    while True:
        ended = state.outcome()
        if ended is not None:
            return end(ended)
        on_move = state.to_move()
        observation = json.loads(json.dumps(state.observe(on_move)))
        if on_move == seat:
            started = time.perf_counter()
            acted = act(observation, Turn("practice", turns + 1, seat, TURN_MS, int(bank_ms), ""))
            bank_ms -= max(0.0, (time.perf_counter() - started) * 1000 - TURN_MS)
            if bank_ms < 0:
                return end(_forfeited(seat, seats, "timeout"))
        else:
            acted = other(observation)
        action = json.loads(json.dumps(acted.action if isinstance(acted, Decision) else acted))
        # True is 1 to Python, and not to the arena.
        if isinstance(action, bool) or action not in state.legal():
            return end(_forfeited(on_move, seats, "illegal_move"))
        state.apply(action)
        turns += 1


def _forfeited(seat: int, seats: int, reason: str) -> Outcome:
    """Whoever breaks a rule gets nothing, and the others share the point."""
    scores = [0.0 if each == seat else 1 / (seats - 1) for each in range(seats)]
    return Outcome(1 - seat if seats == 2 else None, scores, reason)
