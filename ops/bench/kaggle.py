"""Started by the matches benchmark. Every line on stdin is a number of matches: ConnectX, both seats random.

The answer is matches a second. The environment is made once, as a tournament would, and reset for every match.
"""

import contextlib
import io
import sys
import time

# Importing says much, on both streams, about games that are not played here.
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    from kaggle_environments import make

    env = make("connectx", debug=False)

for line in sys.stdin:
    matches = int(line)
    started = time.perf_counter()
    for _ in range(matches):
        env.reset(2)
        steps = env.run(["random", "random"])
        assert steps[-1][0]["status"] == "DONE", steps[-1]
    print(matches / (time.perf_counter() - started), flush=True)
