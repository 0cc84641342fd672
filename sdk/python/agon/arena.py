"""The arena, as an agent's owner sees it."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypedDict

import grpc

from ._wire import SERVICE, message

CALL_S = 15.0
WAIT_S = 60.0

ErrorDetail = message("ErrorDetail")
Status = message("Status", "google.rpc")
ErrorInfo = message("ErrorInfo", "google.rpc")
RetryInfo = message("RetryInfo", "google.rpc")

_RETRYABLE = (
    "NET.",
    "INTERNAL",
    "GRPC.",
    "PLAY.SHUTDOWN",
    "PLAY.SILENT",
    "PLAY.SLOW_READER",
    "PLAY.NO_HELLO",
    "DATABASE.UNAVAILABLE",
    "STORE.CLOSED",
    "LIMITS.",
)
_AWAY = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
)


class ArenaError(Exception):
    """A refusal of the arena, by its stable code; NET.UNAVAILABLE when nobody answers."""

    def __init__(
        self, code: str, message: str, details: Optional[Dict[str, Any]] = None, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details = details or {}
        #: How long the arena asks to wait.
        self.retry_after_s = retry_after_s

    @property
    def retryable(self) -> bool:
        """Whether trying again later may help."""
        return self.code.startswith(_RETRYABLE)


def arena_error(error: grpc.RpcError) -> ArenaError:
    """Puts what gRPC raises into the arena's own words."""
    sent = dict(error.trailing_metadata() or ())
    told, retry_after_s = _rich(sent.get("grpc-status-details-bin", b""))
    if "agon-error-bin" in sent:
        detail = ErrorDetail.FromString(sent["agon-error-bin"])
        details = json.loads(detail.details_json or "{}")
        return ArenaError(detail.code, error.details() or detail.code, details, retry_after_s)
    if told:
        return ArenaError(told, error.details() or told, None, retry_after_s)
    code = error.code()
    return ArenaError("NET.UNAVAILABLE" if code in _AWAY else f"GRPC.{code.name}", error.details() or code.name)


def _rich(sent: bytes) -> Tuple[str, float]:
    """What Google's error model has to say: the arena's code, and when to come back."""
    code, retry_after_s = "", 0.0
    for detail in Status.FromString(sent).details:
        if detail.type_url.endswith("/google.rpc.ErrorInfo"):
            code = ErrorInfo.FromString(detail.value).metadata.get("code", "")
        elif detail.type_url.endswith("/google.rpc.RetryInfo"):
            delay = RetryInfo.FromString(detail.value).retry_delay
            retry_after_s = delay.seconds + delay.nanos / 1e9
    return code, retry_after_s


class Queue(TypedDict, total=False):
    """What is asked of an opponent."""

    game: str
    stake_cents: str
    currency: str
    #: "house" for any agent of the house at once, or a house agent by its id.
    against: str
    house_after_ms: int
    wait_ms: int


class Arena:
    """One connection to an arena.

    >>> Arena("127.0.0.1:4602", key).register_agent("ada", "bot", ["tic-tac-toe"])  # doctest: +SKIP
    'ada.bot'
    """

    def __init__(self, arena: str, key: str, tls: Optional[grpc.ChannelCredentials] = None) -> None:
        options = [
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2_000),
        ]
        if tls is None:
            self._channel = grpc.insecure_channel(arena, options=options)
        else:
            self._channel = grpc.secure_channel(arena, tls, options=options)
        self._metadata: Tuple[Tuple[str, str], ...] = (("authorization", f"Bearer {key}"),)

    def who_am_i(self) -> Any:
        return self._ask("WhoAmI", {})

    def register_agent(self, owner: str, name: str, games: Sequence[str]) -> str:
        """Makes an agent known that plays from outside; the same again changes nothing. Answers with its id."""
        return str(self._ask("RegisterAgent", {"owner": owner, "name": name, "games": list(games)}).agent)

    def submit_agent(
        self, owner: str, name: str, games: Sequence[str], source: str, runtime: str = "python"
    ) -> str:
        """Submits code that the arena runs itself. Answers with the agent's id."""
        fields = {"owner": owner, "name": name, "games": list(games), "source": source, "runtime": runtime}
        return str(self._ask("SubmitAgent", fields, WAIT_S).agent)

    def join_queue(
        self,
        agent: str,
        game: str,
        *,
        stake_cents: str = "0",
        currency: str = "PLAY",
        against: str = "",
        house_after_ms: int = 0,
        wait_ms: int = 60_000,
    ) -> Any:
        """Waits for an opponent; None when none came in time."""
        fields = {
            "agent": agent,
            "game": game,
            "stake_cents": stake_cents,
            "currency": currency,
            "against": against,
            "house_after_ms": house_after_ms,
            "wait_ms": wait_ms,
        }
        joined = self._ask("JoinQueue", fields, wait_ms / 1000 + CALL_S)
        return joined if joined.match_id else None

    def leave_queue(self, agent: str) -> int:
        """Ends the agent's waiting, wherever it was begun."""
        return int(self._ask("LeaveQueue", {"agent": agent}).left)

    def matches(self, agent: str, *, game: str = "", status: str = "", limit: int = 20) -> List[Any]:
        """The agent's newest matches."""
        fields = {"agent": agent, "game": game, "status": status, "limit": limit}
        return list(self._ask("ListMatches", fields).matches)

    def stream(self, requests: Any) -> Any:
        """The stream itself; `play` is what you want."""
        call: Callable[..., Any] = self._channel.stream_stream(
            f"/{SERVICE}/Play",
            request_serializer=message("PlayRequest").SerializeToString,
            response_deserializer=message("PlayResponse").FromString,
        )
        return call(requests, metadata=self._metadata)

    def close(self) -> None:
        self._channel.close()

    def _ask(self, method: str, fields: Dict[str, Any], within_s: float = CALL_S) -> Any:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=message(f"{method}Request").SerializeToString,
            response_deserializer=message(f"{method}Response").FromString,
        )
        try:
            return call(message(f"{method}Request")(**fields), timeout=within_s, metadata=self._metadata)
        except grpc.RpcError as error:
            raise arena_error(error) from None
