import random


def init(config):
    """Called once before the first turn. config: game, version, seat, seats, turnMs, bankMs."""


def act(observation):
    """Called on every turn: look at the observation, return one of its legal actions."""
    return random.choice(observation["legal"])


def on_result(result):
    """Called once at the end. result: game, seat, winner, score, reason."""
