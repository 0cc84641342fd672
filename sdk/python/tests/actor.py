"""An agent of a few simple characters: the twin of sdk/typescript/actor.ts."""

import argparse
import json
import os
import pathlib
import sys
import threading
import time

import grpc
from agon import Arena, ArenaError, play

parser = argparse.ArgumentParser()
for name, default in (
    ("arena", "127.0.0.1:4602"),
    ("key", ""),
    ("agent", ""),
    ("game", "tic-tac-toe"),
    ("against", "house"),
    ("behaviour", "first"),
    ("ca", ""),
    ("cert", ""),
    ("cert-key", ""),
):
    parser.add_argument(f"--{name}", default=default)
for name, number in (("matches", 1), ("concurrency", 1), ("think-ms", 0), ("together", 1)):
    parser.add_argument(f"--{name}", type=int, default=number)
args = parser.parse_args()


def pem(file):
    return pathlib.Path(file).read_bytes() if file else None


tls = grpc.ssl_channel_credentials(pem(args.ca), pem(args.cert_key), pem(args.cert)) if args.ca else None

together = threading.Event()
started_matches = []
lock = threading.Lock()


def say(event, **data):
    with lock:
        sys.stdout.write(json.dumps({"event": event, **data}) + "\n")
        sys.stdout.flush()


def act(observation, turn):
    say("turn", matchId=turn.match_id, turn=turn.turn)
    together.wait()
    time.sleep(3600 if args.behaviour == "slow" else args.think_ms / 1000)
    taken = [cell for cell, mark in enumerate(observation["board"]) if mark != ""]
    return taken[0] if args.behaviour == "illegal" and taken else observation["legal"][0]


def on_started(match):
    say("started", matchId=match.match_id, seat=match.seat, resumed=match.resumed)
    started_matches.append(match)
    if len(started_matches) >= args.together:
        together.set()


def on_result(result):
    say("result", matchId=result.match_id, seat=result.seat, score=result.score, reason=result.reason)


def ask():
    say("account", account=Arena(args.arena, args.key, tls).who_am_i().account)


def take_part():
    play(
        arena=args.arena,
        key=args.key,
        tls=tls,
        agent=args.agent,
        games=[args.game],
        act=act,
        queue={"against": args.against},
        matches=args.matches,
        concurrency=args.concurrency,
        on_started=on_started,
        on_result=on_result,
        on_refused=lambda refused: say("refused", matchId=refused.match_id, code=refused.code),
        on_reconnect=lambda why, after_s: say("reconnect", code=why.code),
    )


code = 0
try:
    ask() if args.behaviour == "ask" else take_part()
except ArenaError as error:
    say("error", code=error.code, message=error.message)
    code = 1
sys.stdout.flush()
# A turn that somebody still sleeps over must not keep the process.
os._exit(code)
