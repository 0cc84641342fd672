"""What an agent sees on its turn and what it returns, by game."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

Mark = Literal["", "X", "O"]
Choice = Literal["C", "D"]
LeducMove = Literal["call", "check", "fold", "raise"]


class _Seen(TypedDict):
    game: str
    version: int
    #: Counts from 1 over all seats.
    turn: int
    seat: int


class TicTacToe(_Seen):
    #: Nine cells, row by row.
    board: List[Mark]
    mark: Literal["X", "O"]
    legal: List[int]


class ConnectFour(_Seen):
    #: Six rows of seven, from the top down.
    board: List[List[Mark]]
    mark: Literal["X", "O"]
    legal: List[int]


class Leduc(_Seen):
    board: Dict[str, Any]
    legal: List[LeducMove]


class Chess(_Seen):
    #: The position in Forsyth-Edwards notation.
    board: str
    colour: Literal["white", "black"]
    history: List[str]
    #: Moves in UCI.
    legal: List[str]


class Prisoners(_Seen):
    board: List[Dict[str, List[Choice]]]
    round: int
    opponents: List[int]
    points: List[int]
    #: A choice for each opponent.
    legal: List[List[Choice]]


Observation = Union[TicTacToe, ConnectFour, Leduc, Chess, Prisoners]
Action = Union[int, str, List[Choice], Optional[object]]
