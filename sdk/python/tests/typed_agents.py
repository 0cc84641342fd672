"""Agents that a type checker lets through, and agents that it must refuse: the lines marked so."""

from typing import TypedDict

from agon import Action, Decision, Observation, Turn, play, practise
from agon.games import Chess


class Where(TypedDict):
    arena: str
    key: str
    agent: str


AT: Where = {"arena": "127.0.0.1:4602", "key": "", "agent": "ada.mine"}


def several(seen: Observation, turn: Turn) -> Action:
    if seen["game"] == "chess":
        return seen["board"].partition(" ")[0]
    return seen["legal"][0]


def plays_numbers(seen: Chess, turn: Turn) -> int:
    return len(seen["history"])


def right() -> None:
    play(**AT, games=["tic-tac-toe"], act=lambda seen, turn: seen["legal"][0], queue={"against": "house"}, matches=1)
    play(**AT, games=["connect-four"], act=lambda seen, turn: len(seen["board"][0]))
    play(**AT, games=["leduc-holdem"], act=lambda seen, turn: Decision("call", reasoning=seen["board"]["card"]))
    play(**AT, games=["prisoners"], act=lambda seen, turn: ["C" for _ in seen["opponents"]])
    play(**AT, games=("chess", "prisoners"), act=several)
    practise(lambda seen, turn: seen["legal"].index(turn.seat))
    practise(lambda seen, turn: seen["history"][0], game="chess", opponent=lambda seen: seen["legal"][0])


def not_right() -> None:
    play(**AT, games=["tic-tac-toe"], act=lambda seen, turn: "centre")  # wrong
    play(**AT, games=["connect-four"], act=lambda seen, turn: len(seen["history"]))  # wrong
    play(**AT, games=["leduc-holdem"], act=lambda seen, turn: Decision("bluff"))  # wrong
    play(**AT, games=["prisoners"], act=lambda seen, turn: "C")  # wrong
    play(**AT, games=["chess"], act=plays_numbers)  # wrong
    play(**AT, games=["chess"], act=lambda seen, turn: seen["board"], queue={"oponent": "house"})  # wrong
    play(**AT, games=["go"], act=lambda seen, turn: 0)  # wrong
    play(arena="", agent="", games=["chess"], act=lambda seen, turn: seen["board"])  # wrong
    practise(lambda seen, turn: 4, game="prisoners")  # wrong
    practise(plays_numbers, game="chess")  # wrong
