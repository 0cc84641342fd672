"""What an agent sees on its turn and what it returns, by game. docs/games.md says what the fields mean."""

from __future__ import annotations

from typing import Dict, List, Literal, Optional, TypedDict, Union

GameName = Literal["tic-tac-toe", "connect-four", "leduc-holdem", "chess", "prisoners"]
Mark = Literal["", "X", "O"]
Choice = Literal["C", "D"]
LeducMove = Literal["call", "check", "fold", "raise"]
LeducCard = Literal["Js", "Jh", "Qs", "Qh", "Ks", "Kh"]


class _Seen(TypedDict):
    version: int
    #: Counts from 1 over all seats.
    turn: int
    seat: int


class TicTacToe(_Seen):
    game: Literal["tic-tac-toe"]
    #: Nine cells, row by row.
    board: List[Mark]
    mark: Literal["X", "O"]
    legal: List[int]


class ConnectFour(_Seen):
    game: Literal["connect-four"]
    #: Six rows of seven, from the top down.
    board: List[List[Mark]]
    mark: Literal["X", "O"]
    legal: List[int]


class LeducHand(TypedDict):
    """A hand that is over. A card that was not shown is None."""

    cards: List[Optional[LeducCard]]
    public: Optional[LeducCard]
    moves: List[List[LeducMove]]
    first: int
    won: List[int]


class LeducBoard(TypedDict):
    #: Counts from 1.
    hand: int
    hands: int
    round: Literal[1, 2]
    card: LeducCard
    public: Optional[LeducCard]
    #: By round.
    moves: List[List[LeducMove]]
    #: The seat that moves first in both rounds of this hand.
    first: int
    #: Chips in the pot, by seat.
    paid: List[int]
    #: Chips in all, by seat, with those in the pot.
    stacks: List[int]
    previous: Optional[LeducHand]


class Leduc(_Seen):
    game: Literal["leduc-holdem"]
    board: LeducBoard
    legal: List[LeducMove]


class Chess(_Seen):
    game: Literal["chess"]
    #: The position in Forsyth-Edwards notation.
    board: str
    colour: Literal["white", "black"]
    history: List[str]
    #: Moves in UCI.
    legal: List[str]


class PrisonersRound(TypedDict):
    mine: List[Choice]
    theirs: List[Choice]


class Prisoners(_Seen):
    game: Literal["prisoners"]
    #: The rounds so far, as this seat has seen them.
    board: List[PrisonersRound]
    round: int
    #: The seats of the opponents: the n-th choice of an action is for the n-th of them.
    opponents: List[int]
    #: Of every seat.
    points: List[int]
    legal: List[List[Choice]]


Observation = Union[TicTacToe, ConnectFour, Leduc, Chess, Prisoners]
Action = Union[int, str, List[Choice]]

#: The type of what is seen, by game: the same as a value, for those who look.
OBSERVATIONS: Dict[str, type] = {
    "tic-tac-toe": TicTacToe,
    "connect-four": ConnectFour,
    "leduc-holdem": Leduc,
    "chess": Chess,
    "prisoners": Prisoners,
}
