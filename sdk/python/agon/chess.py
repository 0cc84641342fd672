"""The rules of chess, as the arena has them. Squares count from a8, row by row, to h1; White's pieces are capitals."""

from __future__ import annotations

from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from .rules import Outcome, drawn, won_by

_START = "rnbqkbnrpppppppp" + "." * 32 + "PPPPPPPPRNBQKBNR"
_STRAIGHT = ((0, 1), (1, 0), (0, -1), (-1, 0))
_DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_JUMPS = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
_STEPS = {"n": _JUMPS, "k": _STRAIGHT + _DIAGONAL, "b": _DIAGONAL, "r": _STRAIGHT, "q": _STRAIGHT + _DIAGONAL}
#: The right to castle that is lost when something leaves or takes this square.
_RIGHTS = {0: "q", 4: "kq", 7: "k", 56: "Q", 60: "KQ", 63: "K"}
_MAX_TURNS = 240


class _Move(NamedTuple):
    start: int
    end: int
    promotion: str = ""

    def __str__(self) -> str:
        return _square(self.start) + _square(self.end) + self.promotion


def _square(at: int) -> str:
    return "abcdefgh"[at % 8] + str(8 - at // 8)


def _reach(board: List[str], start: int, steps: Tuple[Tuple[int, int], ...], far: bool) -> Iterator[int]:
    """The squares that a piece comes to, up to and with the first that is taken."""
    for down, right in steps:
        row, column = start // 8 + down, start % 8 + right
        while 0 <= row < 8 and 0 <= column < 8:
            yield row * 8 + column
            if not far or board[row * 8 + column] != ".":
                break
            row, column = row + down, column + right


def _attacked(board: List[str], square: int, white: bool) -> bool:
    """Whether that side attacks the square: looked for from the square, since attacks go both ways."""
    for kind, steps in _STEPS.items():
        piece = kind.upper() if white else kind
        if piece in board and any(board[at] == piece for at in _reach(board, square, steps, kind in "brq")):
            return True
    down = 1 if white else -1
    pawn = "P" if white else "p"
    return any(board[at] == pawn for at in _reach(board, square, ((down, 1), (down, -1)), False))


class ChessRules:
    name = "chess"

    def __init__(self, seed: str = "", seats: int = 2) -> None:
        self.board = list(_START)
        self.castling, self.passant = "KQkq", -1
        self.clock = 0
        self.history: List[str] = []
        self._positions: List[str] = []
        self._settle()

    def to_move(self) -> int:
        return len(self.history) % 2

    def legal(self) -> List[str]:
        return [] if self._ended else sorted(self._moves)

    def apply(self, action: str) -> None:
        move = self._moves[action]
        piece = self.board[move.start]
        quiet = piece not in "Pp" and self.board[move.end] == "."
        self.board = self._after(move)
        lost = _RIGHTS.get(move.start, "") + _RIGHTS.get(move.end, "")
        self.castling = "".join(each for each in self.castling if each not in lost)
        double = piece in "Pp" and abs(move.end - move.start) == 16
        self.passant = (move.start + move.end) // 2 if double else -1
        self.clock = self.clock + 1 if quiet else 0
        self.history.append(action)
        self._settle()

    def outcome(self) -> Optional[Outcome]:
        if self._ended is None:
            return None
        return won_by(1 - self.to_move(), self._ended) if self._ended == "checkmate" else drawn(self._ended)

    def observe(self, seat: int) -> Any:
        seen = {"game": self.name, "version": 1, "turn": len(self.history) + 1, "seat": seat}
        legal = self.legal() if self.to_move() == seat else []
        colour = "white" if seat == 0 else "black"
        return {**seen, "colour": colour, "board": self.fen, "history": self.history, "legal": legal}

    def _settle(self) -> None:
        """Works out what follows from the position: its moves, its name, and whether it is the last."""
        self._moves = {str(move): move for move in self._pseudo() if self._safe(move)}
        rows = ["".join(self.board[at : at + 8]) for at in range(0, 64, 8)]
        pieces = "/".join(rows)
        for count in range(8, 0, -1):
            pieces = pieces.replace("." * count, str(count))
        # The square of a pawn that may be taken in passing is told only where some move takes it.
        taken = any(move.end == self.passant and self.board[move.start] in "Pp" for move in self._moves.values())
        passant = _square(self.passant) if self.passant >= 0 and taken else "-"
        position = f"{pieces} {'wb'[self.to_move()]} {self.castling or '-'} {passant}"
        self.fen = f"{position} {self.clock} {len(self.history) // 2 + 1}"
        self._positions = [position] if self.clock == 0 else [*self._positions, position]
        self._ended = self._ending(position)

    def _ending(self, position: str) -> Optional[str]:
        if not self._moves:
            white = self.to_move() == 0
            return "checkmate" if self._checked(self.board, white) else "stalemate"
        pieces = "".join(self.board).replace(".", "").lower()
        colours = {(at // 8 + at % 8) % 2 for at, piece in enumerate(self.board) if piece in "Bb"}
        others = pieces.replace("k", "")
        if others in ("", "n", "b") or (set(others) == {"b"} and len(colours) == 1):
            return "insufficient_material"
        if self._positions.count(position) >= 3:
            return "threefold_repetition"
        if self.clock >= 100:
            return "fifty_moves"
        return "move_limit" if len(self.history) >= _MAX_TURNS else None

    @staticmethod
    def _checked(board: List[str], white: bool) -> bool:
        return _attacked(board, board.index("K" if white else "k"), not white)

    def _safe(self, move: _Move) -> bool:
        return not self._checked(self._after(move), self.to_move() == 0)

    def _after(self, move: _Move) -> List[str]:
        board = list(self.board)
        piece = board[move.start]
        white = piece.isupper()
        board[move.start] = "."
        board[move.end] = (move.promotion.upper() if white else move.promotion) or piece
        if piece in "Pp" and move.end == self.passant:
            board[move.end + (8 if white else -8)] = "."
        if piece in "Kk" and abs(move.end - move.start) == 2:
            rook = move.start + 3 if move.end > move.start else move.start - 4
            board[(move.start + move.end) // 2], board[rook] = board[rook], "."
        return board

    def _pseudo(self) -> Iterator[_Move]:
        """All moves, with those that leave the king in check."""
        white = self.to_move() == 0
        for start, piece in enumerate(self.board):
            if piece == "." or piece.isupper() != white:
                continue
            kind = piece.lower()
            if kind == "p":
                yield from self._pawn(start, white)
                continue
            for end in _reach(self.board, start, _STEPS[kind], kind in "brq"):
                if self.board[end] == "." or self.board[end].isupper() != white:
                    yield _Move(start, end)
        yield from self._castle(white)

    def _pawn(self, start: int, white: bool) -> Iterator[_Move]:
        ahead = -1 if white else 1
        ends = []
        if self.board[start + 8 * ahead] == ".":
            ends.append(start + 8 * ahead)
            if start // 8 == (6 if white else 1) and self.board[start + 16 * ahead] == ".":
                ends.append(start + 16 * ahead)
        for end in _reach(self.board, start, ((ahead, 1), (ahead, -1)), False):
            taken = self.board[end]
            if end == self.passant or (taken != "." and taken.isupper() != white):
                ends.append(end)
        for end in ends:
            for promotion in "nbrq" if end // 8 in (0, 7) else ("",):
                yield _Move(start, end, promotion)

    def _castle(self, white: bool) -> Iterator[_Move]:
        king = 60 if white else 4
        for right, between, way in (("k", (1, 2), 1), ("q", (-1, -2, -3), -1)):
            if (right.upper() if white else right) not in self.castling:
                continue
            if any(self.board[king + step] != "." for step in between):
                continue
            # Where the king arrives is looked at with every other move.
            if not any(_attacked(self.board, king + step * way, not white) for step in (0, 1)):
                yield _Move(king, king + 2 * way)
