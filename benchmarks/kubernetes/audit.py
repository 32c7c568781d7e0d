"""Who asked the API server for what, and when: its own audit log, the same ruler for everybody.

Nothing is measured by the code that is being measured, and nobody has to watch while it works.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class _User(msgspec.Struct):
    username: str = ""


class _Object(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Answer(msgspec.Struct):
    code: int = 0


class Call(msgspec.Struct, rename="camel"):
    """One request that was answered."""

    verb: str
    request_received_timestamp: datetime
    stage_timestamp: datetime
    user: _User = msgspec.field(default_factory=_User)
    object_ref: _Object = msgspec.field(default_factory=_Object)
    response_status: _Answer = msgspec.field(default_factory=_Answer)

    @property
    def asked(self) -> float:
        return self.request_received_timestamp.timestamp()

    @property
    def answered(self) -> float:
        return self.stage_timestamp.timestamp()

    @property
    def what(self) -> str:
        part = f"/{self.object_ref.subresource}" if self.object_ref.subresource else ""
        return f"{self.verb} {self.object_ref.resource}{part}"


_decode = msgspec.json.Decoder(Call).decode


class AuditLog:
    """Only the named users are written down, each call once, when it has been answered."""

    def __init__(self, folder: Path, users: tuple[str, ...]) -> None:
        self._policy = folder / "audit-policy.json"
        self._log = folder / "audit.log"
        self._users = users

    def arguments(self) -> tuple[str, ...]:
        """For the API server."""
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [{"level": "Metadata", "users": list(self._users)}, {"level": "None"}],
        }
        self._policy.write_text(json.dumps(policy))
        return (
            f"--audit-policy-file={self._policy}",
            f"--audit-log-path={self._log}",
            "--audit-log-maxsize=4096",
        )

    def calls(self, user: str, namespace: str = "") -> list[Call]:
        """What a user asked for (in one namespace), in the order of the answers; no watches."""
        return [
            call
            for call in self._all()
            if call.user.username == user
            and call.verb != "watch"
            and (not namespace or call.object_ref.namespace == namespace)
        ]

    def _all(self) -> Iterator[Call]:
        with self._log.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield _decode(line)


def made(calls: list[Call], resource: str = "pods") -> list[Call]:
    """Those that created an object."""
    return [
        call
        for call in calls
        if call.verb == "create"
        and call.object_ref.resource == resource
        and not call.object_ref.subresource
        and call.response_status.code == 201
    ]


def writes(calls: list[Call]) -> list[Call]:
    """Those that change something, renewed Leases left out."""
    return [c for c in calls if c.verb in WRITES and c.object_ref.resource != "leases"]


def by_kind(calls: list[Call]) -> Counter[str]:
    return Counter(call.what for call in calls)
