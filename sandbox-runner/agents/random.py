# Plays any legal move with the same chance. The generator is seeded, so a match draws the same numbers again.
import random


def act(observation):
    return random.choice(observation["legal"])
