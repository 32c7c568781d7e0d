"""What the engine keeps about a job between two looks. All of it may be lost at any time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from regatta.controller.plan import Event, Instant
from regatta.engines.kubernetes.api.models import Metadata
from regatta.engines.kubernetes.operator.expectations import Expectations

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
#: How long somebody else's pod is believed to be still there.
STRANGER_SECONDS = 25.0
#: How long a ConfigMap is believed to be there, or not.
CONFIG_MAP_SECONDS = 25.0


class Note(msgspec.Struct, frozen=True):
    """Why the cluster did not take what the plan asked for, for the job's status."""

    reason: str
    message: str


class Refusals:
    """Refused creates of one job: what was said, and when to try again."""

    def __init__(self) -> None:
        self.note: Note | None = None
        self._failures = 0
        self._not_before = 0.0
        self._told: set[str] = set()

    def refused(self, note: Note, now: float) -> Event | None:
        """One event for each thing said, however often and about however many pods."""
        self.note = note
        pause = min(FIRST_PAUSE * 2.0 ** min(self._failures, 30), LONGEST_PAUSE)
        self._failures += 1
        self._not_before = now + pause
        gist = re.sub(r'"[^"]*"|\d+', "", note.message)
        if gist in self._told:
            return None
        self._told.add(gist)
        return Event(type="Warning", reason=note.reason, message=note.message)

    def accepted(self) -> None:
        self.note = None
        self._failures = 0
        self._not_before = 0.0

    def pause(self, now: float) -> float | None:
        """Seconds in which nothing is created."""
        left = self._not_before - now
        return left if left > 0 else None


class Stranger(msgspec.Struct, frozen=True):
    """A pod in our way that our watch does not show: it has none of our labels."""

    metadata: Metadata
    seen_at: float


class FirstSeen:
    """Since when something has been true of pods, by their uids."""

    def __init__(self) -> None:
        self._awake: dict[str, float] = {}

    def of(self, uids: Iterable[str], now: Instant) -> dict[str, datetime]:
        """By the wall clock as it stands now: one that was set meanwhile must not make a pod look
        as if its node were lost. Whoever is not among the uids is forgotten."""
        self._awake = {uid: self._awake.get(uid, now.awake) for uid in uids}
        return {
            uid: now.wall - timedelta(seconds=now.awake - seen) for uid, seen in self._awake.items()
        }


class JobMemory:
    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.expectations = Expectations()
        self.refusals = Refusals()
        self.strangers: dict[str, Stranger] = {}
        #: Pods on their way out, and pods that a node holds back.
        self.leaving = FirstSeen()
        self.held = FirstSeen()
        #: ConfigMaps that held pods name: whether each exists, and when that was looked up.
        self.config_maps: dict[str, tuple[bool, float]] = {}
        #: None until it was looked up; only jobs of the former operator have one.
        self.former_environment: bool | None = None
        #: When the status was last written, for changes that nobody waits for.
        self.status_written_at = float("-inf")
        #: How long the last look took, and when it ended.
        self.took = 0.0
        self.looked_at = float("-inf")
