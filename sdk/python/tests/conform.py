"""Holds what the arena's games showed and were answered to the types of agon.games; says what does not fit."""

import json
import sys
from functools import lru_cache
from typing import Any, Dict, List, Literal, Set, Tuple, Union, get_args, get_origin, get_type_hints

from agon.games import OBSERVATIONS

problems: List[str] = []
#: Which words of each Literal came up, by game: not every word has its turn in every place.
came: Dict[Tuple[str, Tuple[Any, ...]], Set[Any]] = {}

#: Working them out takes longer than looking at a whole match.
hints_of = lru_cache(None)(get_type_hints)


def fits(value: Any, kind: Any, game: str) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        came.setdefault((game, get_args(kind)), set()).add(value)
        return value in get_args(kind)
    if origin is Union:
        return any(fits(value, each, game) for each in get_args(kind))
    if origin is list:
        return isinstance(value, list) and all(fits(each, get_args(kind)[0], game) for each in value)
    if hasattr(kind, "__total__"):
        hints = hints_of(kind)
        if not isinstance(value, dict) or set(value) != set(hints):
            return False
        return all(fits(value[key], each, game) for key, each in hints.items())
    return type(value) is kind


for playout in json.load(sys.stdin):
    kind = OBSERVATIONS[playout["game"]]
    one_legal = get_args(get_type_hints(kind)["legal"])[0]
    for step in playout["steps"]:
        for value, wanted, what in ((step["seen"], kind, "sees"), (step["action"], one_legal, "plays")):
            if not fits(value, wanted, playout["game"]):
                problems.append(f"{playout['game']} {what} {json.dumps(value)}, which is no {wanted}")
for (game, words), found in came.items():
    if not found.issuperset(words):
        problems.append(f"{game} never says {set(words) - found}")
print(json.dumps(problems[:5]))
