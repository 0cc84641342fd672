from strategy import choose


def act(observation):
    """Called on every turn: look at the observation, return one of its legal actions."""
    return choose(observation["legal"])
