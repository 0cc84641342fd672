import random


def choose(legal):
    return random.choice(legal)
