"""A table at home: plays whole matches offline against a simple opponent, to try an agent before it goes out."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass
from typing import Any, Callable, List, Optional

from .player import Decision, Turn

TURN_MS, BANK_MS = 2_000, 60_000

_LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class TicTacToeRules:
    """The rules of tic-tac-toe, as the arena has them."""

    name = "tic-tac-toe"

    def __init__(self) -> None:
        self.cells = [""] * 9
        self.played = 0

    def legal(self) -> List[int]:
        return [] if self.outcome() else [cell for cell, mark in enumerate(self.cells) if mark == ""]

    def observe(self, seat: int) -> Any:
        return _seen(self, seat, list(self.cells))

    def apply(self, action: int) -> None:
        self.cells[action] = "XO"[self.played % 2]
        self.played += 1

    def outcome(self) -> Optional[Any]:
        for a, b, c in _LINES:
            if self.cells[a] and self.cells[a] == self.cells[b] == self.cells[c]:
                return "XO".index(self.cells[a]), "line"
        return (None, "full_board") if self.played == 9 else None


class ConnectFourRules:
    """The rules of connect four, as the arena has them."""

    name = "connect-four"

    def __init__(self) -> None:
        self.rows = [[""] * 7 for _ in range(6)]
        self.played = 0

    def legal(self) -> List[int]:
        return [] if self.outcome() else [column for column in range(7) if self.rows[0][column] == ""]

    def observe(self, seat: int) -> Any:
        return _seen(self, seat, [list(row) for row in self.rows])

    def apply(self, action: int) -> None:
        row = max(at for at in range(6) if self.rows[at][action] == "")
        self.rows[row][action] = "XO"[self.played % 2]
        self.played += 1

    def outcome(self) -> Optional[Any]:
        for row in range(6):
            for column in range(7):
                for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                    if self._four(row, column, down, right):
                        return "XO".index(self.rows[row][column]), "line"
        return (None, "full_board") if self.played == 42 else None

    def _four(self, row: int, column: int, down: int, right: int) -> bool:
        mark = self.rows[row][column]
        if not mark or row + 3 * down > 5 or not 0 <= column + 3 * right <= 6:
            return False
        return all(self.rows[row + i * down][column + i * right] == mark for i in range(4))


RULES = {rules.name: rules for rules in (TicTacToeRules, ConnectFourRules)}


def _seen(state: Any, seat: int, board: Any) -> Any:
    seen = {"game": state.name, "version": 1, "turn": state.played + 1, "seat": seat, "mark": "XO"[seat]}
    return {**seen, "board": board, "legal": state.legal()}


@dataclass(frozen=True)
class Practised:
    winner: Optional[int]
    reason: str
    seat: int
    turns: int

    @property
    def won(self) -> bool:
        return self.winner == self.seat


def practise(
    act: Callable[[Any, Turn], Any],
    *,
    game: str = "tic-tac-toe",
    opponent: Optional[Callable[[Any], Any]] = None,
    seat: int = 0,
    seed: int = 0,
) -> Practised:
    """One match by the arena's rules and clock; the opponent plays at random unless another is given."""
    if game not in RULES:
        raise ValueError(f"{game} cannot be practised here, only {', '.join(RULES)}.")
    state = RULES[game]()
    draw = random.Random(seed)
    other = opponent or (lambda observation: draw.choice(observation["legal"]))
    bank_ms = float(BANK_MS)
    while state.outcome() is None:
        on_move = state.played % 2
        observation = json.loads(json.dumps(state.observe(on_move)))
        if on_move != seat:
            state.apply(other(observation))
            continue
        started = time.perf_counter()
        acted = act(observation, Turn("practice", state.played + 1, seat, TURN_MS, int(bank_ms), ""))
        bank_ms -= max(0.0, (time.perf_counter() - started) * 1000 - TURN_MS)
        action = acted.action if isinstance(acted, Decision) else acted
        if bank_ms < 0:
            return Practised(1 - seat, "timeout", seat, state.played)
        if action not in state.legal():
            return Practised(1 - seat, "illegal_move", seat, state.played + 1)
        state.apply(action)
    winner, reason = state.outcome()
    return Practised(winner, reason, seat, state.played)
