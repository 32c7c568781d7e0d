"""Which requests go wrong, how, and how often."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Drop:
    """The connection ends without an answer; the API server never sees the request."""


@dataclass(frozen=True)
class DropAfterCommit:
    """The API server does what was asked, and the connection ends without an answer."""


@dataclass(frozen=True)
class Stall:
    """Nothing moves for a while; then the request goes on as if nothing had been."""

    seconds: float


@dataclass(frozen=True)
class Hold:
    """Nothing moves until the test says so; then the request goes on as if nothing had been."""

    until: threading.Event


@dataclass(frozen=True)
class Refuse:
    """An answer of the proxy's own, before the API server sees anything."""

    status: int
    reason: str = ""
    retry_after: int | None = None


@dataclass(frozen=True)
class RefuseAfterCommit:
    """The API server does what was asked; the client is told that it failed."""

    status: int = 500
    reason: str = "InternalError"


@dataclass(frozen=True)
class SlowParts:
    """Every part of the answer, so every line of a watch, comes late."""

    seconds: float


@dataclass(frozen=True)
class DropAfterParts:
    """The connection ends in the middle of an answer."""

    parts: int


@dataclass(frozen=True)
class SilenceAfterParts:
    """The connection stands, and nothing more comes for a while: a half-open stream."""

    parts: int
    seconds: float = 3600.0


@dataclass(frozen=True)
class LoseParts:
    """After some parts of a watch, so many are swallowed: events that nobody ever sees."""

    after: int
    count: int


@dataclass(frozen=True)
class ErrorEvent:
    """After some parts of a watch, an ERROR event as the API server writes it, then the end."""

    parts: int = 0
    status: int = 410
    reason: str = "Expired"


Fault = (
    Drop
    | DropAfterCommit
    | Stall
    | Hold
    | Refuse
    | RefuseAfterCommit
    | SlowParts
    | DropAfterParts
    | SilenceAfterParts
    | LoseParts
    | ErrorEvent
)


@dataclass
class Rule:
    """Applies to requests whose method and path (with query) match, `times` times or for good."""

    fault: Fault
    method: str = ".*"
    path: str = ".*"
    times: int | None = 1
    #: Matching requests that are let through first.
    skip: int = 0
    #: How often it struck.
    struck: int = field(default=0, init=False)

    def strikes(self, method: str, path: str) -> bool:
        if self.times is not None and self.struck >= self.times:
            return False
        if not re.fullmatch(self.method, method) or not re.search(self.path, path):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.struck += 1
        return True


class Rules:
    """The first rule that strikes counts. Tests and the proxy use it from different threads."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._lock = threading.Lock()

    def add(self, rule: Rule) -> Rule:
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def strike(self, method: str, path: str) -> Fault | None:
        with self._lock:
            return next((rule.fault for rule in self._rules if rule.strikes(method, path)), None)
