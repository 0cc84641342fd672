"""The rules of the games, as the arena has them. Chess has a file of its own."""

from __future__ import annotations

import hashlib
from itertools import product
from typing import Any, Dict, List, NamedTuple, Optional, Sequence


class Outcome(NamedTuple):
    winner: Optional[int]
    #: One a seat, from 0 to 1; they sum to 1.
    scores: List[float]
    reason: str


def won_by(seat: int, reason: str) -> Outcome:
    return Outcome(seat, [float(each == seat) for each in range(2)], reason)


def drawn(reason: str) -> Outcome:
    return Outcome(None, [0.5, 0.5], reason)


def by_share(points: Sequence[int], reason: str) -> Outcome:
    best, total = max(points), sum(points)
    winner = points.index(best) if list(points).count(best) == 1 else None
    return Outcome(winner, [each / total if total else 1 / len(points) for each in points], reason)


class Chance:
    """Chance that follows from the seed alone: the arena deals by the same one."""

    def __init__(self, game: str, seed: str) -> None:
        self._source = f"chance\n{game}\n{seed}\n"
        self._drawn = 0
        self._block = b""

    def _word(self) -> int:
        at = self._drawn % 8
        if at == 0:
            self._block = hashlib.sha256(f"{self._source}{self._drawn}".encode()).digest()
        self._drawn += 1
        return int.from_bytes(self._block[at * 4 : at * 4 + 4], "big")

    def below(self, bound: int) -> int:
        """Evenly from 0 up to, and not including, `bound`."""
        # The last, incomplete run of the range is thrown away: it would make small numbers likelier.
        limit = 2**32 - 2**32 % bound
        while True:
            value = self._word()
            if value < limit:
                return value % bound

    def shuffled(self, items: Sequence[Any]) -> List[Any]:
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]


class _Marks:
    """What the two games of marks on a board share."""

    name: str
    cells: int
    board: List[Any]

    def __init__(self) -> None:
        self.played = 0

    def to_move(self) -> int:
        return self.played % 2

    def observe(self, seat: int) -> Any:
        seen = {"game": self.name, "version": 1, "turn": self.played + 1, "seat": seat, "mark": "XO"[seat]}
        return {**seen, "board": self.board, "legal": self.legal()}

    def outcome(self) -> Optional[Outcome]:
        mark = self._line()
        if mark:
            return won_by("XO".index(mark), "line")
        return drawn("full_board") if self.played == self.cells else None

    def legal(self) -> List[int]:
        return [] if self.outcome() else self._free()

    def _line(self) -> str:
        """The mark that has a whole line."""
        raise NotImplementedError

    def _free(self) -> List[int]:
        raise NotImplementedError


class TicTacToeRules(_Marks):
    name, cells = "tic-tac-toe", 9
    _LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

    def __init__(self, seed: str = "", seats: int = 2) -> None:
        super().__init__()
        self.board = [""] * 9

    def apply(self, action: int) -> None:
        self.board[action] = "XO"[self.played % 2]
        self.played += 1

    def _free(self) -> List[int]:
        return [cell for cell, mark in enumerate(self.board) if mark == ""]

    def _line(self) -> str:
        full = (self.board[a] for a, b, c in self._LINES if self.board[a] == self.board[b] == self.board[c] != "")
        return next(full, "")


class ConnectFourRules(_Marks):
    name, cells = "connect-four", 42

    def __init__(self, seed: str = "", seats: int = 2) -> None:
        super().__init__()
        self.board = [[""] * 7 for _ in range(6)]

    def apply(self, action: int) -> None:
        row = max(at for at in range(6) if self.board[at][action] == "")
        self.board[row][action] = "XO"[self.played % 2]
        self.played += 1

    def _free(self) -> List[int]:
        return [column for column in range(7) if self.board[0][column] == ""]

    def _line(self) -> str:
        for row, column, (down, right) in product(range(6), range(7), ((0, 1), (1, 0), (1, 1), (1, -1))):
            mark = self.board[row][column]
            if not mark or row + 3 * down > 5 or not 0 <= column + 3 * right <= 6:
                continue
            if all(self.board[row + i * down][column + i * right] == mark for i in range(4)):
                return str(mark)
        return ""


class LeducRules:
    name = "leduc-holdem"
    HANDS, BUY_IN, COST_MAX, RAISE_BY, RAISES_MAX = 40, 64, 13, (2, 4), 2

    def __init__(self, seed: str = "", seats: int = 2) -> None:
        cards = Chance(self.name, seed)
        self.deals = [cards.shuffled(["Js", "Jh", "Qs", "Qh", "Ks", "Kh"])[:3] for _ in range(self.HANDS)]
        self.stacks = [self.BUY_IN, self.BUY_IN]
        self.finished: List[Dict[str, Any]] = []
        self.played = 0
        self._deal()

    def _deal(self) -> None:
        self.round, self.paid = 0, [1, 1]
        self.moves: List[List[str]] = [[], []]

    def to_move(self) -> int:
        return (len(self.finished) + len(self.moves[self.round])) % 2

    def outcome(self) -> Optional[Outcome]:
        over = len(self.finished) == self.HANDS or min(self.stacks) < self.COST_MAX
        return by_share(self.stacks, "chips") if over else None

    def legal(self) -> List[str]:
        if self.outcome():
            return []
        more = ["raise"] if self.moves[self.round].count("raise") < self.RAISES_MAX else []
        return (["check"] if self.paid[0] == self.paid[1] else ["call", "fold"]) + more

    def apply(self, action: str) -> None:
        seat = self.to_move()
        theirs = self.paid[1 - seat]
        if action in ("call", "raise"):
            self.paid[seat] = theirs + (self.RAISE_BY[self.round] if action == "raise" else 0)
        moves = self.moves[self.round]
        moves.append(action)
        self.played += 1
        if action == "fold":
            self._finish(seat)
        elif action == "call" or (action == "check" and len(moves) == 2):
            if self.round == 1:
                self._finish(None)
            else:
                self.round = 1

    def _finish(self, folded: Optional[int]) -> None:
        one, other, shared = self.deals[len(self.finished)]
        if folded is None:
            one, other = (3 if card[0] == shared[0] else "JQK".index(card[0]) for card in (one, other))
            ahead = (one > other) - (one < other)
        else:
            ahead = -1 if folded == 0 else 1
        gain = self.paid[1] if ahead > 0 else -self.paid[0] if ahead < 0 else 0
        done = {"moves": self.moves, "shown": folded is None, "public": self.round == 1, "won": [gain, -gain]}
        self.finished.append(done)
        self.stacks = [self.stacks[0] + gain, self.stacks[1] - gain]
        self._deal()

    def observe(self, seat: int) -> Any:
        at = min(len(self.finished), self.HANDS - 1)
        deal = self.deals[at]
        board = {
            **{"hand": at + 1, "hands": self.HANDS, "round": self.round + 1, "first": at % 2},
            **{"card": deal[seat], "public": deal[2] if self.round == 1 else None},
            **{"moves": self.moves, "paid": self.paid, "stacks": self.stacks, "previous": self._previous(seat)},
        }
        legal = self.legal() if self.to_move() == seat else []
        turn = self.played + 1
        return {"game": self.name, "version": 1, "turn": turn, "seat": seat, "board": board, "legal": legal}

    def _previous(self, seat: int) -> Any:
        if not self.finished:
            return None
        at = len(self.finished) - 1
        last, deal = self.finished[at], self.deals[at]
        return {
            "cards": [deal[owner] if owner == seat or last["shown"] else None for owner in range(2)],
            "public": deal[2] if last["public"] else None,
            **{"moves": last["moves"], "first": at % 2, "won": last["won"]},
        }


class PrisonersRules:
    name = "prisoners"
    PAYOFFS = {("C", "C"): 3, ("C", "D"): 0, ("D", "C"): 5, ("D", "D"): 1}

    def __init__(self, seed: str = "", seats: int = 2) -> None:
        self.seats, self.rounds = seats, 20 + Chance(self.name, seed).below(21)
        self.history: List[List[List[str]]] = []
        self.pending: List[List[str]] = []
        self.points = [0] * seats

    def to_move(self) -> int:
        return len(self.pending)

    def outcome(self) -> Optional[Outcome]:
        return by_share(self.points, "payoffs") if len(self.history) == self.rounds else None

    def legal(self) -> List[List[str]]:
        return [] if self.outcome() else [list(each) for each in product("CD", repeat=self.seats - 1)]

    def apply(self, action: List[str]) -> None:
        self.pending.append(action)
        if len(self.pending) < self.seats:
            return
        for seat in range(self.seats):
            for other in self._opponents(seat):
                pair = self._against(self.pending, seat, other), self._against(self.pending, other, seat)
                self.points[seat] += self.PAYOFFS[pair]
        self.history.append(self.pending)
        self.pending = []

    def _opponents(self, seat: int) -> List[int]:
        return [other for other in range(self.seats) if other != seat]

    @staticmethod
    def _against(chosen: List[List[str]], seat: int, other: int) -> str:
        """What one seat chose against another: its list leaves itself out."""
        return chosen[seat][other if other < seat else other - 1]

    def observe(self, seat: int) -> Any:
        opponents = self._opponents(seat)
        board = [
            {
                "mine": [self._against(chosen, seat, other) for other in opponents],
                "theirs": [self._against(chosen, other, seat) for other in opponents],
            }
            for chosen in self.history
        ]
        turn = len(self.history) * self.seats + len(self.pending) + 1
        seen = {"game": self.name, "version": 1, "turn": turn, "seat": seat, "round": len(self.history) + 1}
        legal = self.legal() if self.to_move() == seat else []
        return {**seen, "opponents": opponents, "board": board, "points": self.points, "legal": legal}
