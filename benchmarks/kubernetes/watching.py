"""When did it happen? One watch in a thread of its own, which notes the time of every change."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType

import msgspec
from tests.kubernetes.controlplane.access import Access


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] = []


class Seen(msgspec.Struct):
    """As much of a pod or a job as tells how far it is."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    type: str
    object: Seen


_decode = msgspec.json.Decoder(_Event).decode
Stage = Callable[[Seen], str]


def phase(thing: Seen) -> str:
    return thing.status.phase


class Watch:
    """Counts the objects of a path by stage. `with Watch(plane, path) as pods:`

    Under `"made"` it counts all that were ever seen, under `"gone"` those that were deleted.
    """

    def __init__(self, plane: Access, path: str, stage: Stage = phase) -> None:
        self._plane = plane
        self._path = path
        self._stage = stage
        self._stages: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self._goals: list[tuple[Callable[[Counter[str]], bool], threading.Event, list[float]]] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._stopped = False
        self._connected = threading.Event()
        self._position = "0"
        self._socket: http.client.HTTPSConnection | None = None

    def __enter__(self) -> Watch:
        self._thread.start()
        if not self._connected.wait(60):
            raise TimeoutError(f"no watch of {self._path} in 60 s")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped = True
        if self._socket is not None and self._socket.sock is not None:
            self._socket.sock.shutdown(2)
        self._thread.join(10)

    def until(self, goal: Callable[[Counter[str]], bool], what: str, seconds: float = 600) -> float:
        """The wall clock's time at the change that reached the goal."""
        reached, when = threading.Event(), [0.0]
        with self._lock:
            if goal(self.counts):
                return time.time()
            self._goals.append((goal, reached, when))
        if not reached.wait(seconds):
            raise TimeoutError(f"{what} not seen in {seconds:.0f} s: {dict(self.counts)}")
        return when[0]

    def _connect(self) -> http.client.HTTPResponse:
        host, _, port = self._plane.url.removeprefix("https://").partition(":")
        context = ssl.create_default_context(cafile=str(self._plane.ca_file))
        self._socket = http.client.HTTPSConnection(host, int(port), context=context)
        token = self._plane.users["admin"].token
        target = f"{self._path}?watch=1&resourceVersion={self._position}&timeoutSeconds=3600"
        self._socket.request("GET", target, headers={"Authorization": f"Bearer {token}"})
        answer = self._socket.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"watching {self._path}: {answer.status} {answer.read()[:200]!r}")
        return answer

    def _run(self) -> None:
        # The API server ends the watch of whoever reads too slowly for it: resume where it was.
        while not self._stopped:
            try:
                self._read(self._connect())
            except (OSError, ValueError, http.client.HTTPException):
                if not self._stopped:
                    raise

    def _read(self, answer: http.client.HTTPResponse) -> None:
        self._connected.set()
        begun = b""
        while part := answer.read1(1 << 20):
            now = time.time()
            *lines, begun = (begun + part).split(b"\n")
            for line in lines:
                self._note(_decode(line), now)

    def _note(self, event: _Event, now: float) -> None:
        uid = event.object.metadata.uid
        with self._lock:
            before = self._stages.get(uid)
            if before is None:
                self.counts["made"] += 1
            else:
                self.counts[before] -= 1
            if event.type == "DELETED":
                after = "gone"
            else:
                after = self._stage(event.object)
            self._stages[uid] = after
            self._position = event.object.metadata.resource_version
            self.counts[after] += 1
            for pending in [goal for goal in self._goals if goal[0](self.counts)]:
                self._goals.remove(pending)
                pending[2][0] = now
                pending[1].set()
