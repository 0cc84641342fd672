"""Plays as an agent from outside: one stream, as many matches at a time as there are."""

from __future__ import annotations

import json
import queue
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Iterator,
    List,
    Literal,
    Optional,
    Sequence,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
    overload,
)

import grpc

from ._wire import message
from .arena import Arena, ArenaError, Queue, arena_error
from .games import (
    Action,
    Chess,
    Choice,
    ConnectFour,
    GameName,
    Leduc,
    LeducMove,
    Observation,
    Prisoners,
    TicTacToe,
)

if TYPE_CHECKING:
    # Type checkers know it without its being installed.
    from typing_extensions import Unpack

Saw = TypeVar("Saw")
Chosen = TypeVar("Chosen", covariant=True)

PlayRequest = message("PlayRequest")
BACKOFF_S = (0.1, 5.0)
CLIENT = "agon-sdk-python/0.1"
THINKERS = 64


@dataclass(frozen=True)
class Turn:
    """What is known about the turn besides the observation."""

    match_id: str
    turn: int
    seat: int
    turn_left_ms: int
    bank_left_ms: int
    deadline: str


@dataclass(frozen=True)
class MatchStarted:
    match_id: str
    game: str
    seat: int
    seats: int
    turn_ms: int
    bank_ms: int
    #: Told again, because the stream was cut.
    resumed: bool


@dataclass(frozen=True)
class MatchResult:
    match_id: str
    game: str
    seat: int
    winner: Optional[int]
    score: float
    reason: str
    wall_ms: float
    claimed_compute_ms: float

    @property
    def won(self) -> bool:
        return self.winner == self.seat


@dataclass(frozen=True)
class Decision(Generic[Chosen]):
    """An action with the agent's reasons, for those who run the arena."""

    action: Chosen
    reasoning: Optional[str] = None
    confidence: Optional[float] = None


#: What an agent is: from what it sees and what is known about the turn to an action, with reasons or without.
Act = Callable[[Saw, Turn], Union[Chosen, Decision[Chosen]]]


class _Where(TypedDict):
    arena: str
    key: str
    agent: str


class PlayOptions(_Where, total=False):
    """What `play` takes besides the games and `act`; it says what each does."""

    queue: Optional[Queue]
    matches: Optional[int]
    concurrency: Optional[int]
    register: bool
    tls: Optional[grpc.ChannelCredentials]
    stop: Optional[threading.Event]
    on_started: Callable[[MatchStarted], None]
    on_result: Callable[[MatchResult], None]
    on_refused: Callable[[Any], None]
    on_reconnect: Callable[[ArenaError, float], None]


_Two = Tuple[GameName, GameName]
_Three = Tuple[GameName, GameName, GameName]
_Four = Tuple[GameName, GameName, GameName, GameName]
_Five = Tuple[GameName, GameName, GameName, GameName, GameName]
#: A tuple of at least two: with a list, a wrong action for one game would pass for a right one of another.
SeveralGames = Union[_Two, _Three, _Four, _Five]

_OnlyTicTacToe = Sequence[Literal["tic-tac-toe"]]
_OnlyConnectFour = Sequence[Literal["connect-four"]]
_OnlyLeduc = Sequence[Literal["leduc-holdem"]]
_OnlyChess = Sequence[Literal["chess"]]
_OnlyPrisoners = Sequence[Literal["prisoners"]]
_Played = List[MatchResult]


@overload
def play(*, games: _OnlyTicTacToe, act: Act[TicTacToe, int], **options: Unpack[PlayOptions]) -> _Played: ...
@overload
def play(*, games: _OnlyConnectFour, act: Act[ConnectFour, int], **options: Unpack[PlayOptions]) -> _Played: ...
@overload
def play(*, games: _OnlyLeduc, act: Act[Leduc, LeducMove], **options: Unpack[PlayOptions]) -> _Played: ...
@overload
def play(*, games: _OnlyChess, act: Act[Chess, str], **options: Unpack[PlayOptions]) -> _Played: ...
@overload
def play(*, games: _OnlyPrisoners, act: Act[Prisoners, List[Choice]], **options: Unpack[PlayOptions]) -> _Played: ...
@overload
def play(*, games: SeveralGames, act: Act[Observation, Action], **options: Unpack[PlayOptions]) -> _Played: ...
def play(
    *,
    arena: str,
    key: str,
    agent: str,
    games: Sequence[str],
    act: Act[Any, Any],
    queue: Optional[Queue] = None,
    matches: Optional[int] = None,
    concurrency: Optional[int] = None,
    register: bool = True,
    tls: Optional[grpc.ChannelCredentials] = None,
    stop: Optional[threading.Event] = None,
    on_started: Callable[[MatchStarted], None] = lambda started: None,
    on_result: Callable[[MatchResult], None] = lambda result: None,
    on_refused: Callable[[Any], None] = lambda refused: None,
    on_reconnect: Callable[[ArenaError, float], None] = lambda why, after_s: None,
) -> List[MatchResult]:
    """Plays until enough matches are over, or `stop` is set.

    With `queue` (for example `{"against": "house"}`) matches of the first game are looked for, `concurrency` at a
    time (one, unless said otherwise); without it, they are waited for, and that many are taken at a time (as many as
    the arena lets an agent have). A stream that is lost is opened again, and what was asked meanwhile is answered
    then. `act` runs in a thread of its own for each turn, and is typed by the game; of several games, given as a
    tuple, `observation["game"]` says which it is.
    """
    player = _Player(Arena(arena, key, tls), agent, games, act, stop or threading.Event())
    player.on_started, player.on_result = on_started, on_result
    player.on_refused, player.on_reconnect = on_refused, on_reconnect
    return player.run(queue, matches, concurrency, register)


class _Thought:
    """What a match was asked last; the answer is None while the agent thinks."""

    def __init__(self, turn: int) -> None:
        self.turn = turn
        self.answer: Optional[Any] = None


class _Player:
    on_started: Callable[[MatchStarted], None]
    on_result: Callable[[MatchResult], None]
    on_refused: Callable[[Any], None]
    on_reconnect: Callable[[ArenaError, float], None]

    def __init__(
        self, arena: Arena, agent: str, games: Sequence[str], act: Act[Any, Any], stop: threading.Event
    ) -> None:
        self._arena = arena
        self._agent = agent
        self._games = list(games)
        self._act = act
        self._stop = stop
        self._lock = threading.RLock()
        self._open: Dict[str, Optional[_Thought]] = {}
        self._results: Dict[str, MatchResult] = {}
        self._changed = threading.Condition(self._lock)
        self._outbox: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._failure: Optional[BaseException] = None
        self._welcomed = False
        self._capacity = 0
        self._call: Any = None
        self._thinkers = ThreadPoolExecutor(max_workers=THINKERS, thread_name_prefix="agon-act")

    def run(
        self, wanted: Optional[Queue], matches: Optional[int], concurrency: Optional[int], register: bool
    ) -> List[MatchResult]:
        owner, _, name = self._agent.partition(".")
        # Whoever looks for matches has what it asked for; whoever waits for them says how many it takes.
        self._capacity = concurrency or 0 if wanted is None else 0
        try:
            if register:
                self._patiently(lambda: self._arena.register_agent(owner, name, self._games))
            connection = threading.Thread(target=self._guard(self._connect), daemon=True)
            connection.start()
            self._wait(lambda: self._welcomed)
            if wanted is None:
                self._wait(lambda: matches is not None and len(self._results) >= matches)
            else:
                self._play_queue(wanted, matches, concurrency or 1)
            return list(self._results.values())
        finally:
            self._stop.set()
            if self._call is not None:
                self._call.cancel()
            self._arena.close()
            self._thinkers.shutdown(wait=False)

    def _play_queue(self, wanted: Queue, matches: Optional[int], concurrency: int) -> None:
        left = [matches if matches is not None else float("inf")]

        def lane() -> None:
            while not self._stop.is_set():
                with self._lock:
                    if left[0] <= 0:
                        return
                    left[0] -= 1
                self._play_one(wanted)

        lanes = [threading.Thread(target=self._guard(lane), daemon=True) for _ in range(concurrency)]
        for each in lanes:
            each.start()
        self._wait(lambda: not any(each.is_alive() for each in lanes))

    def _play_one(self, wanted: Queue) -> None:
        asked: Dict[str, Any] = {"game": self._games[0], **wanted}
        joined = None
        while joined is None and not self._stop.is_set():
            joined = self._patiently(lambda: self._arena.join_queue(self._agent, **asked))
        if joined is None:
            return
        with self._lock:
            if joined.match_id not in self._results:
                self._open.setdefault(joined.match_id, None)
        self._wait(lambda: joined.match_id in self._results)

    def _wait(self, done: Callable[[], bool]) -> None:
        with self._changed:
            while not done() and not self._stop.is_set() and self._failure is None:
                self._changed.wait(0.05)
            if self._failure is not None:
                raise self._failure

    def _guard(self, work: Callable[..., None]) -> Callable[..., None]:
        """Whatever goes wrong in a thread ends the play."""

        def guarded(*args: Any) -> None:
            try:
                work(*args)
            except BaseException as error:  # noqa: BLE001 - it is raised again where the caller waits
                with self._changed:
                    self._failure = self._failure or error
                    self._changed.notify_all()

        return guarded

    def _patiently(self, work: Callable[[], Any]) -> Any:
        """Tries again what the arena cannot do at the moment."""
        failures = 0
        while not self._stop.is_set():
            try:
                return work()
            except ArenaError as error:
                if not error.retryable:
                    raise
                self._pause(failures, error)
                failures += 1
        return None

    def _pause(self, failures: int, why: ArenaError) -> float:
        first, most = BACKOFF_S
        # Those who were cut off together do not come back together, and nobody sooner than the arena asks for.
        after_s: float = why.retry_after_s + min(most, first * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0)
        self._stop.wait(after_s)
        return after_s

    def _connect(self) -> None:
        failures = 0
        while not self._stop.is_set():
            before = time.monotonic()
            error = self._converse()
            if self._stop.is_set():
                return
            if not error.retryable:
                raise error
            failures = 0 if time.monotonic() - before > 1 else failures + 1
            self.on_reconnect(error, self._pause(failures, error))

    def _converse(self) -> ArenaError:
        """One stream from its hello to its end; answers with why it ended."""
        outbox: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        with self._lock:
            hello = {
                **{"agent": self._agent, "games": self._games, "capacity": self._capacity},
                **{"client": CLIENT, "open_matches": list(self._open)},
            }
        outbox.put({"hello": hello})
        self._outbox = outbox
        last: Optional[ArenaError] = None
        self._call = self._arena.stream(_requests(outbox))
        try:
            for response in self._call:
                for note in response.notes:
                    if note.WhichOneof("what") == "going_away":
                        last = ArenaError(note.going_away.code, note.going_away.message)
                    else:
                        self._hear(note)
            return last or ArenaError("NET.UNAVAILABLE", "The stream ended.")
        except grpc.RpcError as error:
            # The goodbye has the reason; how the stream ended may say besides when to come back.
            told = arena_error(error)
            return told if last is None or last.code == told.code else last
        finally:
            outbox.put(None)

    def _hear(self, note: Any) -> None:
        kind = note.WhichOneof("what")
        if kind == "welcome":
            with self._changed:
                self._welcomed = True
                self._changed.notify_all()
        elif kind == "started":
            self._start(note.started)
        elif kind == "observation":
            self._observe(note.observation)
        elif kind == "result":
            self._over(note.result)
        elif kind == "refused":
            self.on_refused(note.refused)
        elif kind == "ping":
            self._outbox.put({"pong": {"nonce": note.ping.nonce}})

    def _start(self, started: Any) -> None:
        with self._lock:
            # Played again from the start: what was thought in the attempt before is void.
            self._open[started.match_id] = self._open.get(started.match_id) if started.resumed else None
        self.on_started(
            MatchStarted(
                started.match_id,
                started.game,
                started.seat,
                started.seats,
                started.turn_ms,
                started.bank_ms,
                started.resumed,
            )
        )

    def _observe(self, observation: Any) -> None:
        with self._lock:
            before = self._open.get(observation.match_id)
            if before is not None and before.turn == observation.turn:
                # Asked again, because the stream was cut: the answer got lost, or is still being thought about.
                if before.answer is not None:
                    self._outbox.put(before.answer)
                return
            thought = _Thought(observation.turn)
            self._open[observation.match_id] = thought
        self._thinkers.submit(self._guard(self._think), observation, thought)

    def _think(self, seen: Any, thought: _Thought) -> None:
        turn = Turn(seen.match_id, seen.turn, seen.seat, seen.turn_left_ms, seen.bank_left_ms, seen.deadline)
        started = time.perf_counter()
        acted = self._act(json.loads(seen.observation_json), turn)
        compute_ms = (time.perf_counter() - started) * 1000
        decision = acted if isinstance(acted, Decision) else Decision(acted)
        action = {
            "match_id": seen.match_id,
            "turn": seen.turn,
            "action_json": json.dumps(decision.action),
            "compute_ms": compute_ms,
        }
        if decision.reasoning is not None:
            action["reasoning"] = decision.reasoning
        if decision.confidence is not None:
            action["confidence"] = decision.confidence
        with self._lock:
            thought.answer = {"action": action}
            if self._open.get(seen.match_id) is thought:
                self._outbox.put(thought.answer)

    def _over(self, told: Any) -> None:
        winner = told.winner if told.HasField("winner") else None
        result = MatchResult(
            told.match_id, told.game, told.seat, winner, told.score, told.reason, told.wall_ms, told.claimed_compute_ms
        )
        with self._changed:
            self._open.pop(result.match_id, None)
            if result.match_id in self._results:
                return
        # Told before it counts: whoever waits for the last match must not end before its result was heard.
        self.on_result(result)
        with self._changed:
            self._results[result.match_id] = result
            self._changed.notify_all()


def _requests(outbox: "queue.SimpleQueue[Any]") -> Iterator[Any]:
    """What is said in the same moment travels together."""
    while True:
        note = outbox.get()
        notes = []
        while note is not None:
            notes.append(note)
            if outbox.empty():
                break
            note = outbox.get()
        if notes:
            yield PlayRequest(notes=notes)
        if note is None:
            return
