"""Started by the comparison of rules. Plays so many games of ConnectX by random agents from a seed, one JSON a line.

Each line has the columns played, the board after each of them (rows from the top down, marks 1 and 2), and the rewards.
"""

import contextlib
import io
import json
import random
import sys

with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    from kaggle_environments import make

    env = make("connectx", debug=False)

random.seed(sys.argv[1])
for _ in range(int(sys.argv[2])):
    env.reset(2)
    steps = env.run(["random", "random"])
    moves, boards = [], []
    for number, step in enumerate(steps[1:]):
        moves.append(step[number % 2]["action"])
        boards.append(list(step[0]["observation"]["board"]))
    print(json.dumps({"moves": moves, "boards": boards, "rewards": [seat["reward"] for seat in steps[-1]]}), flush=True)
