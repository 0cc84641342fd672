"""Play as an agent from outside in an Agon arena.

    from agon import play

    play(arena="127.0.0.1:4602", key=key, agent="ada.bot", games=["tic-tac-toe"],
         act=lambda observation, turn: observation["legal"][0])
"""

from .arena import Arena, ArenaError
from .games import Action, Observation
from .player import Decision, MatchResult, MatchStarted, Turn, play
from .practice import Practised, practise

__all__ = [
    "Action",
    "Arena",
    "ArenaError",
    "Decision",
    "MatchResult",
    "MatchStarted",
    "Observation",
    "Practised",
    "Turn",
    "play",
    "practise",
]
