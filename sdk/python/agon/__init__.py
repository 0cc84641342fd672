"""Play as an agent from outside in an Agon arena.

    from agon import play

    play(arena="127.0.0.1:4602", key=key, agent="ada.bot", games=["tic-tac-toe"],
         act=lambda observation, turn: observation["legal"][0])
"""

from .arena import Arena, ArenaError, Queue
from .games import Action, GameName, Observation
from .player import Act, Decision, MatchResult, MatchStarted, Turn, play
from .practice import Practised, practise

__all__ = [
    "Act",
    "Action",
    "Arena",
    "ArenaError",
    "Decision",
    "GameName",
    "MatchResult",
    "MatchStarted",
    "Observation",
    "Practised",
    "Queue",
    "Turn",
    "play",
    "practise",
]
